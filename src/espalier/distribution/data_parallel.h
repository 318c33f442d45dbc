#pragma once
// Every device holds the whole model and its part of the batch: no layout cuts a variable, the batch axis cuts the samples.
#include <optional>
#include <string>
#include <vector>

#include "espalier/distribution/distribution.h"

namespace espalier {

struct DataParallel : Distribution {
  // A 1-D mesh with the axis "batch" over these devices; none given: one device for each core this process may use.
  explicit DataParallel(std::vector<std::string> devices = {});
  // Over the axis of `mesh` that `batch_dim_name` names (see find_batch_axis); the other axes replicate, and `describe` says so.
  explicit DataParallel(const DeviceMesh& mesh, const std::optional<std::string>& batch_dim_name = std::nullopt);
};

}  // namespace espalier

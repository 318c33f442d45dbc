#pragma once
// Variables are cut as the layout map says; on a mesh of several axes one of them may cut the batch as well. The layouts may use that
// axis too.
#include <optional>
#include <string>

#include "espalier/distribution/distribution.h"

namespace espalier {

struct ModelParallel : Distribution {
  // batch_dim_name: see find_batch_axis.
  explicit ModelParallel(LayoutMap layout_map, const std::optional<std::string>& batch_dim_name = std::nullopt);
};

}  // namespace espalier

#include "espalier/distribution/data_parallel.h"

#include "espalier/base/cores.h"

namespace espalier {
namespace {

DeviceMesh line_of(std::vector<std::string> devices) {
  if (devices.empty()) devices = list_devices(static_cast<int64_t>(available_cores().size()));
  auto count = static_cast<int64_t>(devices.size());
  return DeviceMesh({count}, {"batch"}, std::move(devices));
}

}  // namespace

DataParallel::DataParallel(std::vector<std::string> devices) : DataParallel(line_of(std::move(devices))) {}

DataParallel::DataParallel(const DeviceMesh& mesh, const std::optional<std::string>& batch_dim_name)
    : Distribution{mesh, LayoutMap(mesh), find_batch_axis(mesh, batch_dim_name), "DataParallel"} {}

}  // namespace espalier

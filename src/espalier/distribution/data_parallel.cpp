#include "espalier/distribution/data_parallel.h"

#include <algorithm>
#include <thread>

namespace espalier {
namespace {

DeviceMesh line_of(std::vector<std::string> devices) {
  if (devices.empty()) devices = list_devices(std::max<int64_t>(1, std::thread::hardware_concurrency()));
  auto count = static_cast<int64_t>(devices.size());
  return DeviceMesh({count}, {"batch"}, std::move(devices));
}

}  // namespace

DataParallel::DataParallel(std::vector<std::string> devices) : DataParallel(line_of(std::move(devices))) {}

DataParallel::DataParallel(const DeviceMesh& mesh, const std::optional<std::string>& batch_dim_name)
    : Distribution{mesh, LayoutMap(mesh), find_batch_axis(mesh, batch_dim_name), "DataParallel"} {}

}  // namespace espalier

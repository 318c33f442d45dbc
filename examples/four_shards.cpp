// A variable of (32, 64) over four devices: the second dim cut by the axis "model" gives four shards of (32, 16).
#include <cstdio>

#include "espalier/mesh/drawing.h"

using namespace espalier;

int main() {
  DeviceMesh mesh(4, "model");
  TensorLayout layout{std::nullopt, "model"};
  Dims shape{32, 64};
  Sharding sharding = bind(layout, shape, mesh, "variable");
  for (int64_t device = 0; device < mesh.size(); ++device) {
    Box shard = shard_box(sharding, shape, mesh, device);
    std::printf("%s holds %s from %s\n", mesh.devices()[device].c_str(), to_string(shard.shape).c_str(), to_string(shard.offset).c_str());
  }
  std::printf("\n%s", draw_sharding(sharding, shape, mesh).c_str());
}

#pragma once
// How a model is spread over devices: the mesh, the layouts of its variables and the axis that cuts the batch. Everything a compiler needs
// to know, and a value: pass it on, compare its parts, change a copy. DataParallel and ModelParallel are constructors of it. Not here:
// which layouts the tensors in between get (passes/).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/mesh/device_mesh.h"
#include "espalier/mesh/layout_map.h"
#include "espalier/mesh/sharding.h"

namespace espalier {

struct Distribution {
  DeviceMesh mesh;
  LayoutMap layout_map;           // of the same mesh
  std::optional<int> batch_axis;  // the mesh axis that cuts dim 0 of data; none: every device sees the whole batch
  std::string name;               // "DataParallel", "ModelParallel"
};

// The axis that cuts the batch. name: an axis, "none" for none; absent: the axis called data or batch, else the first.
// An Error with the nearest name when the mesh has no such axis.
std::optional<int> find_batch_axis(const DeviceMesh& mesh, const std::optional<std::string>& name = std::nullopt);

// Of a tensor of samples: dim 0 is cut by the batch axis, the rest is whole. A scalar is replicated.
Sharding batch_sharding(const Distribution& distribution, int rank);
// Samples of a batch of `size` on each device, in mesh order; some may hold none.
std::vector<int64_t> batch_per_device(const Distribution& distribution, int64_t size);

// Of an optimizer's state of `bytes` for a variable of this shape and sharding. Replicas along the batch axis need not all repeat the
// update: where it pays, each keeps a part of the state, updates that part of the variable, and the parts are gathered (Xu et al. 2020,
// "Automatic cross-replica sharding of weight update"). So the first whole dim with an element for each device is cut by the batch axis
// too, unless that axis cuts the variable already or there is too little to save.
Sharding optimizer_state_sharding(const Distribution& distribution, const Sharding& variable, const Dims& shape, int64_t bytes);

// One line: what cuts the batch, how many rules there are, and the axes along which everything is replicated.
std::string describe(const Distribution& distribution);
// "axis 'model' cuts nothing: its 2 devices repeat the same work" for each axis that neither the batch nor a layout names.
std::vector<std::string> idle_axes(const Distribution& distribution);

}  // namespace espalier

#include "espalier/mesh/sharding.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier {

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMax:
      return "max";
    case Reduction::kLogSumExp:
      return "logsumexp";
  }
  return "?";
}

void AxisList::push_back(int axis) {
  ESPALIER_ASSERT(size_ < kMaxRank && axis >= 0 && axis < kMaxAxes);
  axis_[size_++] = static_cast<uint8_t>(axis);
}

AxisSet AxisList::set() const {
  AxisSet set = 0;
  for (uint8_t axis : *this) set |= AxisSet{1} << axis;
  return set;
}

AxisSet Sharding::cut_axes() const {
  AxisSet set = 0;
  for (int d = 0; d < rank; ++d) set |= dims[static_cast<size_t>(d)].set();
  return set;
}

int first_whole_dim(const Sharding& sharding, const Dims& shape, int64_t parts) {
  for (int d = 0; d < shape.rank(); ++d)
    if (sharding.dims[static_cast<size_t>(d)].empty() && shape[d] >= parts) return d;
  return -1;
}

size_t ShardingHash::operator()(const Sharding& sharding) const {
  size_t hash = 1469598103934665603ull;
  auto mix = [&](uint64_t word) { hash = (hash ^ word) * 1099511628211ull; };
  mix(sharding.rank);
  mix(sharding.pending);
  mix(static_cast<uint64_t>(sharding.reduction));
  for (int d = 0; d < sharding.rank; ++d) {
    mix(0x100);
    for (uint8_t axis : sharding.dims[static_cast<size_t>(d)]) mix(axis);
  }
  return hash;
}

Sharding bind(const TensorLayout& layout, const Dims& shape, const DeviceMesh& mesh, const std::string& where) {
  if (layout.rank() > shape.rank())
    usage_error(fmt::format("layout {} of rank {} is longer than the shape {} of rank {}", to_string(layout), layout.rank(),
                            to_string(shape), shape.rank()),
                where, "give at most one entry a dim; missing trailing entries mean whole");
  Sharding sharding(shape.rank());
  for (int d = 0; d < layout.rank(); ++d)
    for (const std::string& name : layout.dims()[static_cast<size_t>(d)].names) {
      int axis = mesh.axis(name, where);
      if (mesh.shape()[static_cast<size_t>(axis)] > 1) sharding.dims[static_cast<size_t>(d)].push_back(axis);
    }
  return sharding;
}

TensorLayout unbind(const Sharding& sharding, const DeviceMesh& mesh) {
  std::vector<DimAxes> dims(sharding.rank);
  for (size_t d = 0; d < dims.size(); ++d)
    for (uint8_t axis : sharding.dims[d]) dims[d].names.push_back(mesh.axis_names()[axis]);
  return TensorLayout(std::move(dims));
}

std::string to_string(const Sharding& sharding, const DeviceMesh& mesh) {
  std::string text = to_string(unbind(sharding, mesh));
  if (sharding.pending == 0) return text;
  std::vector<std::string> axes;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (sharding.pending >> a & 1) axes.push_back("'" + mesh.axis_names()[static_cast<size_t>(a)] + "'");
  return fmt::format("{}+{}({})", text, to_string(sharding.reduction), fmt::join(axes, ", "));
}

Range part(int64_t n, int64_t k, int64_t index) {
  int64_t small = n / k, larger = n % k;
  return {index * small + std::min(index, larger), small + (index < larger ? 1 : 0)};
}

Box intersect(const Box& a, const Box& b) {
  Box common{a.offset, a.shape};
  for (int d = 0; d < a.shape.rank(); ++d) {
    common.offset[d] = std::max(a.offset[d], b.offset[d]);
    common.shape[d] = std::max<int64_t>(0, std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]) - common.offset[d]);
  }
  return common;
}

int64_t part_count(const AxisList& axes, const DeviceMesh& mesh) {
  int64_t count = 1;
  for (uint8_t axis : axes) count *= mesh.shape()[axis];
  return count;
}

int64_t part_index(const AxisList& axes, const DeviceMesh& mesh, int64_t device) {
  int64_t index = 0;
  for (uint8_t axis : axes) index = index * mesh.shape()[axis] + mesh.coordinate(device, axis);
  return index;
}

Box shard_box(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh, int64_t device) {
  Box box{Dims::filled(shape.rank(), 0), shape};
  for (int d = 0; d < shape.rank(); ++d) {
    const AxisList& axes = sharding.dims[static_cast<size_t>(d)];
    if (axes.empty()) continue;
    Range range = part(shape[d], part_count(axes, mesh), part_index(axes, mesh, device));
    box.offset[d] = range.offset;
    box.shape[d] = range.size;
  }
  return box;
}

Dims local_shape(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh, int64_t device) {
  return shard_box(sharding, shape, mesh, device).shape;
}

}  // namespace espalier

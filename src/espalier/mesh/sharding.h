#pragma once
// A layout bound to a mesh, as the compiler carries it: for each dim the mesh axes that cut it, and the axes that hold a pending
// reduction ("partial"). Equal meaning has equal bytes: axes of size 1 never appear, the order within a dim is kept, the rest is sorted.
//
// Uneven is normal: n over k parts differ by at most one, the larger first; parts may be empty. Two axes on one dim cut it once, by the
// product of their sizes, major first. Sizes follow from n, k and the index, and are stored nowhere.
#include <array>
#include <cstdint>
#include <string>

#include "espalier/base/dims.h"
#include "espalier/mesh/device_mesh.h"
#include "espalier/mesh/tensor_layout.h"

namespace espalier {

using AxisSet = uint32_t;  // bit a: mesh axis a

// How pending parts are combined. kLogSumExp: log(exp a + exp b), which is associative and needs one value, not a pair.
enum class Reduction : uint8_t { kSum, kMax, kLogSumExp };
const char* to_string(Reduction reduction);

// The ordered axes that cut one dim, major first.
class AxisList {
 public:
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int operator[](int i) const { return axis_[static_cast<size_t>(i)]; }
  const uint8_t* begin() const { return axis_.data(); }
  const uint8_t* end() const { return axis_.data() + size_; }
  void push_back(int axis);
  AxisSet set() const;
  friend bool operator==(const AxisList&, const AxisList&) = default;

 private:
  std::array<uint8_t, kMaxRank> axis_{};
  uint8_t size_ = 0;
};

struct Sharding {
  Sharding() = default;
  explicit Sharding(int rank) : rank(static_cast<uint8_t>(rank)) {}  // replicated

  std::array<AxisList, kMaxRank> dims{};
  AxisSet pending = 0;
  Reduction reduction = Reduction::kSum;  // of the pending axes; kSum when there are none
  uint8_t rank = 0;

  AxisSet cut_axes() const;  // axes that cut some dim
  bool replicated() const { return cut_axes() == 0 && pending == 0; }
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

// The first dim that nothing cuts and that has an element for each of `parts` devices; -1 for none.
int first_whole_dim(const Sharding& sharding, const Dims& shape, int64_t parts);

struct ShardingHash {
  size_t operator()(const Sharding& sharding) const;
};

// Binds a layout to a mesh. Dims past the layout's rank are whole; axes of size 1 vanish.
// Errors, naming `where` (a variable path, a rule): a layout longer than the shape's rank, an axis the mesh does not have.
Sharding bind(const TensorLayout& layout, const Dims& shape, const DeviceMesh& mesh, const std::string& where);
// The names again, one entry a dim of the tensor.
TensorLayout unbind(const Sharding& sharding, const DeviceMesh& mesh);
// "(None, 'model')", with "+sum('data')" behind it when sums over data are pending.
std::string to_string(const Sharding& sharding, const DeviceMesh& mesh);

// A range of n elements.
struct Range {
  int64_t offset = 0, size = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
// Part `index` of `n` over `k` parts: the first n mod k parts are one longer.
Range part(int64_t n, int64_t k, int64_t index);

// A rectangular part of a tensor.
struct Box {
  Dims offset, shape;
  friend bool operator==(const Box&, const Box&) = default;
};
// The common part of two boxes; its shape has a 0 where they do not meet.
Box intersect(const Box& a, const Box& b);

// The number of parts of a dim, and which of them `device` holds.
int64_t part_count(const AxisList& axes, const DeviceMesh& mesh);
int64_t part_index(const AxisList& axes, const DeviceMesh& mesh, int64_t device);
// The part of a tensor of `shape` that `device` holds.
Box shard_box(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh, int64_t device);
Dims local_shape(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh, int64_t device);

}  // namespace espalier

#include "espalier/nn/shards.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "espalier/base/runs.h"

namespace espalier::nn {
namespace {

constexpr int64_t kWorthSharing = 1 << 14;  // elements of a batch: some 10 us of one core

// The first device that holds a box, by box. Batches are cut into few different boxes, so a list does.
class FirstHolders {
 public:
  // -1 when this device is the first.
  int64_t find_or_add(const Box& box, int64_t device) {
    for (const auto& [known, holder] : holders_)
      if (known == box) return holder;
    holders_.emplace_back(box, device);
    return -1;
  }

 private:
  std::vector<std::pair<Box, int64_t>> holders_;
};

Dims without_batch(const Dims& dims) { return Dims(dims.begin() + 1, dims.end()); }

}  // namespace

void feed_samples(const Value& value, const DeviceMesh& mesh, const Dataset& data, int field, std::span<const int64_t> samples,
                  const ShardOf& shard, const Hands& hands) {
  ESPALIER_ASSERT(value.type.shape[0] == static_cast<int64_t>(samples.size()));
  const auto width = static_cast<int64_t>(size_of(value.type.dtype));
  struct Part {
    Box box;
    std::byte* to;
    const std::byte* from;  // where an earlier device has it; null when it is read
  };
  std::vector<Part> parts;
  FirstHolders holders;
  int64_t elements = 0;
  for (int64_t device = 0; device < mesh.size(); ++device) {
    const Box box = shard_box(value.sharding, value.type.shape, mesh, device);
    if (box.shape.volume() == 0) continue;
    const int64_t holder = holders.find_or_add(box, device);
    auto buffer = [&](int64_t d) { return static_cast<std::byte*>(shard(d)); };
    parts.push_back({box, buffer(device), holder < 0 ? nullptr : buffer(holder)});
    elements += box.shape.volume();
  }
  const int count = elements < kWorthSharing ? 1 : hands.count;
  auto side_by_side = [&](const std::function<void(const Part&, int)>& f) {
    auto all = [&](int hand) {
      for (const Part& p : parts) f(p, hand);
    };
    count == 1 ? all(0) : hands.run(all);
  };
  side_by_side([&](const Part& p, int hand) {
    if (p.from != nullptr) return;
    const Range mine = part(p.box.shape[0], count, hand);
    const Dims offset = without_batch(p.box.offset), shape = without_batch(p.box.shape);
    const auto rows = samples.subspan(static_cast<size_t>(p.box.offset[0] + mine.offset), static_cast<size_t>(mine.size));
    std::byte* to = p.to + mine.offset * shape.volume() * width;
    if (value.type.dtype == DType::kI32)
      data.read(field, rows, offset, shape, reinterpret_cast<int32_t*>(to));
    else
      data.read(field, rows, offset, shape, reinterpret_cast<float*>(to));
  });
  if (std::all_of(parts.begin(), parts.end(), [](const Part& p) { return p.from == nullptr; })) return;
  side_by_side([&](const Part& p, int hand) {
    if (p.from == nullptr) return;
    const Range mine = part(p.box.shape.volume() * width, count, hand);
    std::memcpy(p.to + mine.offset, p.from + mine.offset, static_cast<size_t>(mine.size));
  });
}

void feed_scalar(const Value& value, const DeviceMesh& mesh, double number, const ShardOf& shard) {
  for (int64_t device = 0; device < mesh.size(); ++device) {
    if (value.type.dtype == DType::kI32)
      *static_cast<int32_t*>(shard(device)) = static_cast<int32_t>(number);
    else
      *static_cast<float*>(shard(device)) = static_cast<float>(number);
  }
}

void for_each_part(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh,
                   const std::function<void(int64_t, const Box&)>& part) {
  AxisSet replicating = ~sharding.cut_axes();
  for (int64_t device = 0; device < mesh.size(); ++device) {
    bool replica = false;  // one holder a part: the device at 0 on every axis that does not cut
    for (int a = 0; a < mesh.axis_count(); ++a) replica = replica || ((replicating >> a & 1) && mesh.coordinate(device, a) != 0);
    if (replica) continue;
    Box box = shard_box(sharding, shape, mesh, device);
    if (box.shape.volume() > 0) part(device, box);
  }
}

namespace {

template <class T>
void gather_as(const Value& value, const DeviceMesh& mesh, const ShardOf& shard, int64_t first, int64_t count, float* some) {
  const Dims& shape = value.type.shape;
  for_each_part(value.sharding, shape, mesh, [&](int64_t device, const Box& box) {
    const auto* from = static_cast<const T*>(shard(device));
    for_each_run(shape, box.offset, box.shape, [&](int64_t at_whole, int64_t at_part, int64_t run) {
      const int64_t begin = std::max(at_whole, first), end = std::min(at_whole + run, first + count);
      if (begin < end)
        std::transform(from + at_part + begin - at_whole, from + at_part + end - at_whole, some + begin - first,
                       [](T number) { return static_cast<float>(number); });
    });
  });
}

}  // namespace

void gather_some(const Value& value, const DeviceMesh& mesh, const ShardOf& shard, int64_t first, int64_t count, float* some) {
  if (value.type.dtype == DType::kI32)
    gather_as<int32_t>(value, mesh, shard, first, count, some);
  else
    gather_as<float>(value, mesh, shard, first, count, some);
}

void gather_parts(const Value& value, const DeviceMesh& mesh, const ShardOf& shard, float* whole) {
  gather_some(value, mesh, shard, 0, value.type.shape.volume(), whole);
}

}  // namespace espalier::nn

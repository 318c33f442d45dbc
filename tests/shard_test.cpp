// Uses: mesh
// Shard arithmetic against brute force that deals elements out one by one and counts owners.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "espalier/mesh/sharding.h"

namespace espalier {
namespace {

// Sizes of n over k: dealt round and round, so that the first n mod k get one more.
std::vector<int64_t> dealt(int64_t n, int64_t k) {
  std::vector<int64_t> sizes(static_cast<size_t>(k), 0);
  for (int64_t i = 0; i < n; ++i) ++sizes[static_cast<size_t>(i % k)];
  return sizes;
}

TEST(Part, AgreesWithDealing) {
  for (int64_t n = 0; n <= 40; ++n)
    for (int64_t k = 1; k <= 9; ++k) {
      int64_t offset = 0;
      std::vector<int64_t> sizes = dealt(n, k);
      for (int64_t i = 0; i < k; ++i) {
        EXPECT_EQ(part(n, k, i), (Range{offset, sizes[static_cast<size_t>(i)]})) << n << " over " << k << ", part " << i;
        offset += sizes[static_cast<size_t>(i)];
      }
      EXPECT_EQ(offset, n);
    }
}

std::vector<int64_t> sizes_over(int64_t n, int64_t k) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < k; ++i) sizes.push_back(part(n, k, i).size);
  return sizes;
}

TEST(Part, TheCasesOfTheField) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes_over(5, 4), (Sizes{2, 1, 1, 1}));
  EXPECT_EQ(sizes_over(6, 4), (Sizes{2, 2, 1, 1}));
  EXPECT_EQ(sizes_over(1, 8), (Sizes{1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(sizes_over(0, 3), (Sizes{0, 0, 0}));
  EXPECT_EQ(sizes_over(10, 4), (Sizes{3, 3, 2, 2}));
  EXPECT_EQ(sizes_over(50257, 8), (Sizes{6283, 6282, 6282, 6282, 6282, 6282, 6282, 6282}));
  EXPECT_EQ(sizes_over(int64_t{1} << 61, 3)[2], (int64_t{1} << 61) / 3);
}

// Element of a row-major tensor -> devices whose box holds it.
std::map<int64_t, std::vector<int64_t>> owners(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh) {
  std::map<int64_t, std::vector<int64_t>> owned;
  for (int64_t device = 0; device < mesh.size(); ++device) {
    Box box = shard_box(sharding, shape, mesh, device);
    EXPECT_EQ(box.shape, local_shape(sharding, shape, mesh, device));
    Dims strides = row_major_strides(shape);
    for (int64_t flat = 0; flat < shape.volume(); ++flat) {
      bool inside = true;
      for (int d = 0; d < shape.rank(); ++d) {
        int64_t index = flat / strides[d] % shape[d];
        inside = inside && index >= box.offset[d] && index < box.offset[d] + box.shape[d];
      }
      if (inside) owned[flat].push_back(device);
    }
  }
  return owned;
}

// Devices that agree on every axis that cuts nothing form a replica; each has to own every element exactly once.
void expect_one_owner_per_replica(const TensorLayout& layout, const Dims& shape, const DeviceMesh& mesh) {
  Sharding sharding = espalier::bind(layout, shape, mesh, "v");
  AxisSet cut = sharding.cut_axes();
  auto replica = [&](int64_t device) {
    std::vector<int64_t> coordinates;
    for (int a = 0; a < mesh.axis_count(); ++a)
      if (!(cut >> a & 1)) coordinates.push_back(mesh.coordinate(device, a));
    return coordinates;
  };
  std::map<std::vector<int64_t>, int> once;
  for (int64_t device = 0; device < mesh.size(); ++device) once[replica(device)] = 1;
  auto owned = owners(sharding, shape, mesh);
  for (int64_t flat = 0; flat < shape.volume(); ++flat) {
    std::map<std::vector<int64_t>, int> count;
    for (int64_t device : owned[flat]) ++count[replica(device)];
    EXPECT_EQ(count, once) << to_string(layout) << " " << to_string(shape) << " on " << to_string(mesh) << ", element " << flat;
  }
}

TEST(Shard, EveryElementHasOneOwnerPerReplica) {
  for (const DeviceMesh& mesh : {DeviceMesh({2, 2}, {"a", "b"}), DeviceMesh({2, 4}, {"a", "b"}), DeviceMesh({3, 2}, {"a", "b"}),
                                 DeviceMesh({1, 3, 2}, {"one", "a", "b"})})
    for (int64_t n = 0; n <= 13; ++n) {
      expect_one_owner_per_replica({{"a", "b"}}, {n}, mesh);
      expect_one_owner_per_replica({{"b", "a"}}, {n}, mesh);
      expect_one_owner_per_replica({"a"}, {n}, mesh);
      expect_one_owner_per_replica({"b", "a"}, {n, 5}, mesh);
      expect_one_owner_per_replica({std::nullopt, {"b", "a"}}, {2, n}, mesh);
    }
}

// Two axes cut once, by the product index: the sizes are those of one cut in k1*k2, and the first axis is major.
TEST(Shard, TwoAxesOnOneDimCutByTheProduct) {
  for (auto [k1, k2] : {std::pair<int64_t, int64_t>{2, 2}, {2, 4}, {3, 2}}) {
    DeviceMesh mesh({k1, k2}, {"data", "model"});
    for (int64_t n : {2, 5, 7, 12}) {
      Sharding sharding = espalier::bind({{"data", "model"}}, {n}, mesh, "v"), other = espalier::bind({{"model", "data"}}, {n}, mesh, "v");
      std::vector<int64_t> sizes = dealt(n, k1 * k2);
      for (int64_t i = 0; i < k1; ++i)
        for (int64_t j = 0; j < k2; ++j) {
          int64_t device = i * k2 + j, minor = j * k1 + i;
          EXPECT_EQ(local_shape(sharding, {n}, mesh, device)[0], sizes[static_cast<size_t>(device)]);
          EXPECT_EQ(shard_box(sharding, {n}, mesh, device).offset[0], std::accumulate(sizes.begin(), sizes.begin() + device, int64_t{0}));
          EXPECT_EQ(shard_box(other, {n}, mesh, device).offset[0], std::accumulate(sizes.begin(), sizes.begin() + minor, int64_t{0}));
        }
    }
  }
}

TEST(Shard, TheTextbookKernel) {
  DeviceMesh mesh(4, "model");
  Sharding sharding = espalier::bind({std::nullopt, "model"}, {32, 64}, mesh, "v");
  for (int64_t device = 0; device < 4; ++device) EXPECT_EQ(shard_box(sharding, {32, 64}, mesh, device), (Box{{0, 16 * device}, {32, 16}}));
  DeviceMesh twice({2, 4}, {"data", "model"});
  sharding = espalier::bind({std::nullopt, "model"}, {32, 64}, twice, "v");
  for (int64_t device = 0; device < 4; ++device)
    EXPECT_EQ(shard_box(sharding, {32, 64}, twice, device), shard_box(sharding, {32, 64}, twice, device + 4));
}

// Values of a tensor cut over a mesh, as each device holds them.
using Shards = std::vector<std::vector<int>>;

template <class Visit>
void for_each_element(const Box& box, const Dims& shape, Visit&& visit) {
  size_t local = 0;
  for (int64_t i = 0; i < box.shape[0]; ++i)
    for (int64_t j = 0; j < box.shape[1]; ++j) visit(local++, static_cast<size_t>((box.offset[0] + i) * shape[1] + box.offset[1] + j));
}

Shards scatter(const std::vector<int>& whole, const Dims& shape, const Sharding& sharding, const DeviceMesh& mesh) {
  Shards shards(static_cast<size_t>(mesh.size()));
  for (size_t device = 0; device < shards.size(); ++device)
    for_each_element(shard_box(sharding, shape, mesh, static_cast<int64_t>(device)), shape,
                     [&](size_t, size_t global) { shards[device].push_back(whole[global]); });
  return shards;
}

std::vector<int> gather(const Shards& shards, const Dims& shape, const Sharding& sharding, const DeviceMesh& mesh) {
  std::vector<int> whole(static_cast<size_t>(shape.volume()), -1);
  for (size_t device = 0; device < shards.size(); ++device)
    for_each_element(shard_box(sharding, shape, mesh, static_cast<int64_t>(device)), shape,
                     [&](size_t local, size_t global) { whole[global] = shards[device][local]; });
  return whole;
}

TEST(Shard, MovesBetweenMeshesKeepAllNumbers) {
  const Dims shape{17, 17};
  std::vector<int> numbers(289);
  std::iota(numbers.begin(), numbers.end(), 0);
  DeviceMesh from({2, 4}, {"data", "model"}), to({3, 5}, {"x", "y"});
  Sharding cut = espalier::bind({"data", "model"}, shape, from, "v");
  for (const TensorLayout& layout :
       {TensorLayout{"y", "x"}, TensorLayout{{"x", "y"}}, TensorLayout{std::nullopt, {"y", "x"}}, TensorLayout{}}) {
    Sharding other = espalier::bind(layout, shape, to, "v");
    std::vector<int> moved = gather(scatter(numbers, shape, cut, from), shape, cut, from);
    EXPECT_EQ(gather(scatter(moved, shape, other, to), shape, other, to), numbers) << to_string(layout);
  }
}

TEST(Box, IntersectionAgreesWithCounting) {
  const Dims shape{7, 5};
  DeviceMesh mesh({4, 3}, {"a", "b"});
  Sharding first = espalier::bind({"a", "b"}, shape, mesh, "v"), second = espalier::bind({{"b", "a"}}, shape, mesh, "v");
  for (int64_t i = 0; i < mesh.size(); ++i)
    for (int64_t j = 0; j < mesh.size(); ++j) {
      Box a = shard_box(first, shape, mesh, i), b = shard_box(second, shape, mesh, j), common = intersect(a, b);
      std::vector<int> holds(35, 0);
      for_each_element(a, shape, [&](size_t, size_t global) { ++holds[global]; });
      for_each_element(b, shape, [&](size_t, size_t global) { ++holds[global]; });
      EXPECT_EQ(common.shape.volume(), std::count(holds.begin(), holds.end(), 2));
      for_each_element(common, shape, [&](size_t, size_t global) { EXPECT_EQ(holds[global], 2); });
    }
}

}  // namespace
}  // namespace espalier

// Uses: mesh
// Drawings: the exact pictures of the field's examples, and what has to hold for every sharding: lines fit the terminal, every device
// stands in its box or in the list of empty ones, a thousand devices stay short.
#include "espalier/mesh/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "texts.h"

namespace espalier {
namespace {

using std::nullopt;

std::string draw(const std::string& mesh, const TensorLayout& layout, const Dims& shape, const DrawOptions& options = {}) {
  DeviceMesh grid = DeviceMesh::parse(mesh);
  return "\n" + draw_sharding(espalier::bind(layout, shape, grid, "v"), shape, grid, options);
}

TEST(NamedSharding, AsJaxPrintsIt) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  EXPECT_EQ(named_sharding(TensorLayout{nullopt, "model"}, mesh), "NamedSharding(mesh={'data': 2, 'model': 4}, spec=(None, 'model'))");
  EXPECT_EQ(named_sharding(espalier::bind({"model"}, {64, 10}, mesh, "v"), mesh),
            "NamedSharding(mesh={'data': 2, 'model': 4}, spec=('model', None))");
}

TEST(Drawing, TheTextbookKernel) {
  EXPECT_EQ(draw("model=4", {nullopt, "model"}, {32, 64}), R"(
   0       16      32      48      64
 0 ┌───────┬───────┬───────┬───────┐
   │ cpu:0 │ cpu:1 │ cpu:2 │ cpu:3 │
32 └───────┴───────┴───────┴───────┘
)");
}

TEST(Drawing, ReplicasShareACell) {
  EXPECT_EQ(draw("data=2,model=4", {nullopt, "model"}, {32, 64}), R"(
   0              16             32             48             64
 0 ┌──────────────┬──────────────┬──────────────┬──────────────┐
   │ cpu:0, cpu:4 │ cpu:1, cpu:5 │ cpu:2, cpu:6 │ cpu:3, cpu:7 │
32 └──────────────┴──────────────┴──────────────┴──────────────┘
)");
  EXPECT_EQ(draw("data=2,model=4", {}, {32, 64}), R"(
   0                                                        64
 0 ┌────────────────────────────────────────────────────────┐
   │ cpu:0, cpu:1, cpu:2, cpu:3, cpu:4, cpu:5, cpu:6, cpu:7 │
32 └────────────────────────────────────────────────────────┘
)");
}

TEST(Drawing, UnevenPartsAreToScale) {
  EXPECT_EQ(draw("model=4", {"model"}, {10}), R"(
0           3           6       8       10
┌───────────┬───────────┬───────┬───────┐
│   cpu:0   │   cpu:1   │ cpu:2 │ cpu:3 │
└───────────┴───────────┴───────┴───────┘
)");
  EXPECT_EQ(draw("model=4", {"model"}, {5, 7}), R"(
  0       7
0 ┌───────┐
  │       │
  │ cpu:0 │
  │       │
2 ├───────┤
  │ cpu:1 │
3 ├───────┤
  │ cpu:2 │
4 ├───────┤
  │ cpu:3 │
5 └───────┘
)");
}

TEST(Drawing, GridOfTwoAxes) {
  EXPECT_EQ(draw("data=2,model=4", {"data", "model"}, {17, 17}), R"(
   0         5       9       13      17
 0 ┌─────────┬───────┬───────┬───────┐
   │  cpu:0  │ cpu:1 │ cpu:2 │ cpu:3 │
 9 ├─────────┼───────┼───────┼───────┤
   │  cpu:4  │ cpu:5 │ cpu:6 │ cpu:7 │
17 └─────────┴───────┴───────┴───────┘
)");
}

TEST(Drawing, ScalarIsOneCell) {
  EXPECT_EQ(draw("data=2", {}, {}), R"(
┌──────────────┐
│ cpu:0, cpu:1 │
└──────────────┘
)");
}

TEST(Drawing, EmptyShardsAreListedBelow) {
  EXPECT_EQ(draw("model=8", {"model", nullopt, nullopt}, {1, 2048, 256}), R"(
[0:1, :, :]
     0       256
   0 ┌───────┐
     │ cpu:0 │
2048 └───────┘
empty: cpu:1, cpu:2, cpu:3, cpu:4, cpu:5, cpu:6, cpu:7
)");
  EXPECT_EQ(draw("model=2", {"model"}, {0}), "\nempty: cpu:0, cpu:1\n");
}

TEST(Drawing, MoreDimsAreSlices) {
  EXPECT_EQ(draw("e=3,model=2", {"e", nullopt, nullopt, "model"}, {5, 2, 8, 6}, {.max_slices = 2}), R"(
[0:2, :, :, :]
  0       3       6
0 ┌───────┬───────┐
  │ cpu:0 │ cpu:1 │
8 └───────┴───────┘
[2:4, :, :, :]
  0       3       6
0 ┌───────┬───────┐
  │ cpu:2 │ cpu:3 │
8 └───────┴───────┘
… 1 more slice
)");
}

TEST(Drawing, PendingSumsAreSaid) {
  DeviceMesh mesh({2, 2}, {"data", "model"});
  Sharding sharding = espalier::bind({"model"}, {4}, mesh, "v");
  sharding.pending = 1;
  EXPECT_EQ("\n" + draw_sharding(sharding, {4}, mesh), R"(
0              2              4
┌──────────────┬──────────────┐
│ cpu:0, cpu:2 │ cpu:1, cpu:3 │
└──────────────┴──────────────┘
pending: sum over 'data'
)");
}

TEST(Drawing, AThousandDevicesStayShort) {
  EXPECT_EQ(draw("model=1024", {nullopt, "model"}, {4096, 4096}), R"(
     0        4        8        12       16       20            4092     4096
   0 ┌────────┬────────┬────────┬────────┬────────┬─────────────┬────────┐
     │ cpu:0  │ cpu:1  │ cpu:2  │ cpu:3  │ cpu:4  │ … 1018 more │cpu:1023│
4096 └────────┴────────┴────────┴────────┴────────┴─────────────┴────────┘
)");
  EXPECT_EQ(draw("data=256,model=4", {"data"}, {50257, 768}, {.max_rows = 4}), R"(
      0                                        768
    0 ┌────────────────────────────────────────┐
      │       cpu:0, cpu:1, cpu:2, cpu:3       │
  197 ├────────────────────────────────────────┤
      │       cpu:4, cpu:5, cpu:6, cpu:7       │
  394 ├────────────────────────────────────────┤
      │               … 253 more               │
50061 ├────────────────────────────────────────┤
      │ cpu:1020, cpu:1021, cpu:1022, cpu:1023 │
50257 └────────────────────────────────────────┘
)");
  EXPECT_EQ(draw("data=1024", {"data"}, {3}), R"(
0       1       2       3
┌───────┬───────┬───────┐
│ cpu:0 │ cpu:1 │ cpu:2 │
└───────┴───────┴───────┘
empty: cpu:3, cpu:4, cpu:5, cpu:6, … 1016 more, cpu:1023
)");
}

TEST(Drawing, NamesAreTheMeshs) {
  DeviceMesh mesh({2}, {"model"}, {"cpu:7", "cpu:3"});
  EXPECT_EQ("\n" + draw_sharding(espalier::bind({"model"}, {4}, mesh, "v"), {4}, mesh), R"(
0       2       4
┌───────┬───────┐
│ cpu:7 │ cpu:3 │
└───────┴───────┘
)");
}

// A random layout of a random shape on a random mesh.
struct Sample {
  DeviceMesh mesh;
  Dims shape;
  Sharding sharding;
};

Sample sample(std::mt19937* random, int64_t largest_axis) {
  auto below = [&](int64_t n) { return static_cast<int64_t>((*random)() % static_cast<uint64_t>(n)); };
  std::vector<int64_t> sizes;
  std::vector<std::string> names;
  for (int64_t a = 0, count = 1 + below(3); a < count; ++a) {
    sizes.push_back(1 + below(largest_axis));
    names.push_back(std::string(1, static_cast<char>('a' + a)));
  }
  DeviceMesh mesh(sizes, names);
  Dims shape;
  for (int64_t d = 0, rank = below(5); d < rank; ++d) shape.push_back(below(4) == 0 ? 1 + below(100000) : 1 + below(12));
  std::vector<DimAxes> dims(static_cast<size_t>(shape.rank()));
  for (const std::string& name : names)
    if (shape.rank() > 0 && below(3) > 0) dims[static_cast<size_t>(below(shape.rank()))].names.push_back(name);
  return {mesh, shape, espalier::bind(TensorLayout(dims), shape, mesh, "v")};
}

TEST(Drawing, EveryDeviceIsDrawnOnceWhereItsShardIs) {
  const auto seed = static_cast<uint32_t>(GTEST_FLAG_GET(random_seed) ? GTEST_FLAG_GET(random_seed) : 4711);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Sample s = sample(&random, 3);
    if (s.mesh.size() > 16) continue;
    std::string text = draw_sharding(s.sharding, s.shape, s.mesh, {.width = 400, .max_rows = 100, .max_slices = 100});
    std::map<std::string, std::vector<size_t>> seen;  // name -> where in the text
    for (size_t at = text.find("cpu:"); at != std::string::npos; at = text.find("cpu:", at + 1))
      seen[text.substr(at, text.find_first_not_of("0123456789", at + 4) - at)].push_back(at);
    size_t empty_list = std::min(text.find("empty:"), text.size());
    for (int64_t device = 0; device < s.mesh.size(); ++device) {
      const std::string& wanted = s.mesh.devices()[static_cast<size_t>(device)];
      ASSERT_EQ(seen[wanted].size(), 1u) << wanted << "\n" << text;
      EXPECT_EQ(seen[wanted][0] > empty_list, local_shape(s.sharding, s.shape, s.mesh, device).volume() == 0) << wanted << "\n" << text;
    }
    if (HasFailure()) FAIL() << to_string(s.shape) << " " << to_string(s.sharding, s.mesh) << " on " << to_string(s.mesh);
  }
}

TEST(Drawing, FitsTheTerminalAndStaysShort) {
  const auto seed = static_cast<uint32_t>(GTEST_FLAG_GET(random_seed) ? GTEST_FLAG_GET(random_seed) : 4711);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Sample s = sample(&random, round % 3 == 0 ? 40 : 8);
    for (int width : {-5, 40, 57, 80, 120}) {
      std::string text = draw_sharding(s.sharding, s.shape, s.mesh, {.width = width});
      std::vector<std::string> lines = lines_of(text);
      EXPECT_EQ(text.back(), '\n');
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), std::max(40, width)) << text;
      EXPECT_LE(lines.size(), 4u * 43u + 3u) << text;
      if (HasFailure()) FAIL() << to_string(s.shape) << " " << to_string(s.sharding, s.mesh) << " on " << to_string(s.mesh);
    }
  }
}

}  // namespace
}  // namespace espalier

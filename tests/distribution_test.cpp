// Uses: distribution
// DataParallel and ModelParallel: which axis cuts the batch, what every device sees, and what a wrong name says.
#include "espalier/distribution/distribution.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "espalier/base/cores.h"
#include "espalier/distribution/data_parallel.h"
#include "espalier/distribution/default_distribution.h"
#include "espalier/distribution/model_parallel.h"
#include "expect_error.h"

namespace espalier {
namespace {

using std::nullopt;
using Counts = std::vector<int64_t>;

ModelParallel model_parallel(const std::string& mesh, const std::optional<std::string>& batch = nullopt) {
  return ModelParallel(LayoutMap(DeviceMesh::parse(mesh)), batch);
}

TEST(DataParallel, OverAllOrSomeDevices) {
  DataParallel all;
  EXPECT_EQ(all.mesh.devices(), list_devices(static_cast<int64_t>(available_cores().size())));
  EXPECT_EQ(all.name, "DataParallel");
  DataParallel two({"cpu:3", "cpu:1"});
  EXPECT_EQ(two.mesh, DeviceMesh({2}, {"batch"}, {"cpu:3", "cpu:1"}));
  EXPECT_EQ(two.batch_axis, 0);
  EXPECT_TRUE(two.layout_map.empty());
  EXPECT_EQ(error_text([] { DataParallel({"cpu:0", "cpu:0"}); }).substr(0, 29), "device 'cpu:0' is listed twic");
}

TEST(DataParallel, OnAMeshOfTwoAxesTheFirstCutsTheBatchUnlessNamed) {
  DeviceMesh mesh({2, 4}, {"x", "y"});
  EXPECT_EQ(DataParallel(mesh).batch_axis, 0);
  EXPECT_EQ(DataParallel(mesh, "y").batch_axis, 1);
  EXPECT_EQ(describe(DataParallel(mesh)),
            "DataParallel on mesh {'x': 2, 'y': 4}: axis 'x' cuts the batch in 2; variables are replicated; axis 'y' cuts nothing: its 4 "
            "devices repeat the same work");
}

TEST(BatchAxis, IsFoundByName) {
  EXPECT_EQ(model_parallel("model=4,batch=2").batch_axis, 1);
  EXPECT_EQ(model_parallel("model=4,data=2").batch_axis, 1);
  EXPECT_EQ(model_parallel("data=4,model=2").batch_axis, 0);
  EXPECT_EQ(model_parallel("model=4,expert=2").batch_axis, 0);
  EXPECT_EQ(model_parallel("model=4,expert=2", "expert").batch_axis, 1);
  EXPECT_EQ(model_parallel("data=4,model=2", "none").batch_axis, nullopt);
  EXPECT_EQ(error_text([] { model_parallel("data=4,model=2", "dta"); }),
            "the mesh {'data': 4, 'model': 2} has no axis 'dta': batch axis; did you mean 'data'?");
}

TEST(Batch, EveryDeviceGetsItsPart) {
  EXPECT_EQ(batch_per_device(DataParallel({"cpu:0", "cpu:1"}), 128), (Counts{64, 64}));
  EXPECT_EQ(batch_per_device(model_parallel("data=2,model=4"), 128), (Counts(8, 64)));
  EXPECT_EQ(batch_per_device(model_parallel("model=4,batch=2"), 5), (Counts{3, 2, 3, 2, 3, 2, 3, 2}));
  EXPECT_EQ(batch_per_device(model_parallel("model=2", "none"), 32), (Counts{32, 32}));
  EXPECT_EQ(batch_per_device(model_parallel("data=3"), 32), (Counts{11, 11, 10}));
  EXPECT_EQ(batch_per_device(model_parallel("data=8"), 2), (Counts{1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch_per_device(model_parallel("data=8"), 4), (Counts{1, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(batch_per_device(model_parallel("data=1,model=2"), 7), (Counts{7, 7}));
}

TEST(Batch, ShardingByRank) {
  Distribution distribution = model_parallel("model=4,data=2");
  EXPECT_TRUE(batch_sharding(distribution, 0).replicated());
  for (int rank = 1; rank <= kMaxRank; ++rank) {
    Sharding sharding = batch_sharding(distribution, rank);
    ASSERT_EQ(sharding.rank, rank);
    EXPECT_EQ(sharding.dims[0].set(), AxisSet{2});
    EXPECT_EQ(sharding.cut_axes(), AxisSet{2});
  }
  EXPECT_EQ(batch_sharding(model_parallel("data=1,model=4"), 2), Sharding(2));
  EXPECT_EQ(batch_sharding(distribution, 2), espalier::bind({"data"}, {9, 9}, distribution.mesh, "batch"));
}

TEST(ModelParallel, DescribesRulesAndIdleAxes) {
  LayoutMap map(DeviceMesh({2, 4, 3, 1}, {"data", "model", "spare", "one"}));
  map.insert(".*kernel", {nullopt, "model"});
  EXPECT_EQ(
      describe(ModelParallel(map)),
      "ModelParallel on mesh {'data': 2, 'model': 4, 'spare': 3, 'one': 1}: axis 'data' cuts the batch in 2; 1 layout rule; axis 'spare' "
      "cuts nothing: its 3 devices repeat the same work");
  EXPECT_EQ(
      describe(model_parallel("model=2", "none")),
      "ModelParallel on mesh {'model': 2}: every device sees the whole batch; variables are replicated; axis 'model' cuts nothing: its 2 "
      "devices repeat the same work");
}

TEST(DefaultDistribution, IsSetAndTakenBack) {
  EXPECT_FALSE(distribution().has_value());
  set_distribution(DataParallel({"cpu:0", "cpu:1"}));
  ASSERT_TRUE(distribution().has_value());
  EXPECT_EQ(distribution()->mesh.size(), 2);
  set_distribution(nullopt);
  EXPECT_FALSE(distribution().has_value());
}

TEST(DefaultDistribution, ReadersSeeOneOrTheOther) {
  std::vector<std::jthread> threads;
  for (int64_t size : {1, 2, 3})
    threads.emplace_back([size] {
      for (int i = 0; i < 200; ++i) {
        set_distribution(DataParallel(DeviceMesh(size, "batch")));
        std::optional<Distribution> seen = distribution();
        ASSERT_TRUE(seen.has_value());
        Counts parts = batch_per_device(*seen, 6);
        EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), 6);
      }
    });
  threads.clear();
  set_distribution(nullopt);
}

// Replicas along the batch axis keep a part of the optimizer's state each, where that saves enough.
TEST(OptimizerState, IsCutAlongTheBatchAxisWhereItPays) {
  const ModelParallel both = model_parallel("data=2,model=4", "data");
  auto cut = [](const Distribution& distribution, const Sharding& variable, const Dims& shape) {
    return to_string(optimizer_state_sharding(distribution, variable, shape, shape.volume() * 4), distribution.mesh);
  };
  Sharding whole(2), columns(2), rows(2), by_data(2);
  columns.dims[1].push_back(1), rows.dims[0].push_back(1), by_data.dims[1].push_back(0);
  EXPECT_EQ(cut(both, whole, {512, 512}), "('data', None)");
  EXPECT_EQ(cut(both, columns, {512, 512}), "('data', 'model')");
  EXPECT_EQ(cut(both, rows, {512, 512}), "('model', 'data')");
  EXPECT_EQ(cut(both, by_data, {512, 512}), "(None, 'data')");  // fully sharded already
  EXPECT_EQ(cut(both, whole, {1, 100000}), "(None, 'data')");   // a dim of one element gives a device nothing
  EXPECT_EQ(cut(both, whole, {182, 182}), "('data', None)");
  EXPECT_EQ(cut(both, whole, {181, 181}), "(None, None)");  // less than 128 KiB: the second collective would cost more
  EXPECT_EQ(cut(model_parallel("data=1,model=4", "data"), whole, {512, 512}), "(None, None)");
  EXPECT_EQ(cut(model_parallel("model=4", "none"), whole, {512, 512}), "(None, None)");
}

}  // namespace
}  // namespace espalier

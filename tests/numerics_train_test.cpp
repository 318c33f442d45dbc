// Where sharded training went wrong elsewhere, as models: every sample once, metrics and batch statistics weighted by count, clipping by
// the norm of the whole, copies that stay equal in bits, models larger than a device, meshes of one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "espalier/base/runs.h"
#include "espalier/data/synthetic.h"
#include "espalier/distribution/data_parallel.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/trainer.h"
#include "scratch.h"

namespace espalier::nn {
namespace {

using Layouts = std::vector<std::pair<std::string, TensorLayout>>;

Distribution distribution(const DeviceMesh& mesh, const Layouts& layouts, const std::string& batch_axis) {
  LayoutMap map(mesh);
  for (const auto& [key, layout] : layouts) map.insert(key, layout);
  return ModelParallel(map, batch_axis);
}
Distribution one_device() { return DataParallel(DeviceMesh(1, "batch")); }

const Layouts kColumns = {{".*/kernel", {std::nullopt, "model"}}, {".*/bias", {"model"}}};
const Layouts kRows = {{".*/kernel", {"model", std::nullopt}}};
const Layouts kSharded = {{".*/kernel", {"data", "model"}}, {".*/bias", {DimAxes{"model", "data"}}}};

std::vector<int64_t> first_samples(int64_t n) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < n; ++i) samples.push_back(i);
  return samples;
}

// The largest difference over the largest magnitude.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0, scale = 1e-6;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    scale = std::max(scale, std::abs(static_cast<double>(b[i])));
  }
  return most / scale;
}

// --- every sample once -------------------------------------------------------------------------------------------------------------------

// Counts how often each sample of each field is read for a device.
class CountingDataset final : public Dataset {
 public:
  explicit CountingDataset(const Dataset& data) : Dataset(data.fields(), data.size()), data_(data) {}
  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, float* out) const override {
    count(field, samples);
    data_.read(field, samples, offset, shape, out);
  }
  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, int32_t* out) const override {
    count(field, samples);
    data_.read(field, samples, offset, shape, out);
  }
  void expect_each_read(int times) {
    EXPECT_EQ(reads_.size(), fields().size() * static_cast<size_t>(size()));
    for (const auto& [key, count] : reads_) EXPECT_EQ(count, times) << "field " << key.first << " sample " << key.second;
    reads_.clear();
  }

 private:
  void count(int field, std::span<const int64_t> samples) const {
    for (int64_t sample : samples) ++reads_[{field, sample}];
  }
  const Dataset& data_;
  mutable std::map<std::pair<int, int64_t>, int> reads_;
};

struct Seen {
  History history;
  Logs evaluation;
  std::vector<float> predictions;
};

Seen see_all(const Distribution& where, int64_t samples, int64_t batch) {
  Trainer trainer(Sequential({Input({6}), Dense(8, {.activation = "relu"}), Dense(3, {.activation = "softmax"})}),
                  {.optimizer = SGD(0.1), .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}}, where,
                  {.batch_size = batch});
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), samples, 1);
  auto inputs = make_synthetic_dataset(trainer.fields(StepKind::kPredict), samples, 1);
  CountingDataset counted(*data), counted_inputs(*inputs);
  Seen seen;
  seen.history = trainer.fit(counted, {.epochs = 2, .callbacks = {}});
  counted.expect_each_read(2);
  seen.evaluation = trainer.evaluate(counted);
  counted.expect_each_read(1);
  int64_t rows = 0;
  trainer.predict(counted_inputs, [&](int, int64_t first, int64_t count, const float* values) {
    EXPECT_EQ(first, rows);
    rows += count;
    seen.predictions.insert(seen.predictions.end(), values, values + count * 3);
  });
  EXPECT_EQ(rows, samples);
  counted_inputs.expect_each_read(1);
  return seen;
}

double value(const Logs& logs, const std::string& name) {
  for (const auto& [key, number] : logs)
    if (key == name) return number;
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Batch, EverySampleCountsOnce) {
  struct Case {
    int64_t samples, batch;
    DeviceMesh mesh;
  };
  for (const Case& c : {Case{100, 32, DeviceMesh(8, "data")}, Case{5, 32, DeviceMesh(2, "data")}, Case{3, 1, DeviceMesh(4, "data")},
                        Case{9, 4, DeviceMesh({3, 2}, {"data", "model"})}}) {
    Seen one = see_all(one_device(), c.samples, c.batch), many = see_all(distribution(c.mesh, {}, "data"), c.samples, c.batch);
    EXPECT_EQ(many.history.samples, 2 * c.samples);
    ASSERT_EQ(many.history.step_losses.size(), static_cast<size_t>(2 * ((c.samples + c.batch - 1) / c.batch)));
    for (size_t i = 0; i < many.history.step_losses.size(); ++i) EXPECT_NEAR(many.history.step_losses[i], one.history.step_losses[i], 1e-5);
    EXPECT_LT(difference(many.predictions, one.predictions), 1e-5);
    // A ratio: numerators and denominators are summed apart. The mean of the batches' accuracies would be another number.
    EXPECT_NEAR(value(many.evaluation, "accuracy"), value(one.evaluation, "accuracy"), 1e-12);
    double hits = value(many.evaluation, "accuracy") * static_cast<double>(c.samples);
    EXPECT_NEAR(hits, std::round(hits), 1e-9);
    for (size_t i = 0; i < many.history.epochs.size(); ++i)
      for (size_t e = 0; e < 2; ++e) EXPECT_NEAR(many.history.epochs[i].second[e], one.history.epochs[i].second[e], 1e-5);
  }
}

// 5 rows over 2 devices are 3 and 2: the mean is that of the 5, not the mean of two means.
TEST(Batch, StatisticsAreWeightedByCount) {
  for (int64_t devices : {1, 2, 4, 8}) {
    Trainer trainer(Sequential({Input({3}), BatchNormalization({.momentum = 0.5, .name = "bn"}), Dense(1)}),
                    {.optimizer = SGD(0.0), .loss = "mse"}, distribution(DeviceMesh(devices, "data"), {}, "data"), {.batch_size = 5});
    auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), 5, 2);
    trainer.initialize();
    trainer.train_batch(*data, first_samples(5));
    std::vector<float> x(15);
    data->read(0, first_samples(5), x.data());
    std::vector<float> mean, variance;
    for (size_t f = 0; f < 3; ++f) {
      double sum = 0, squares = 0;
      for (size_t r = 0; r < 5; ++r) sum += x[r * 3 + f];
      for (size_t r = 0; r < 5; ++r) squares += (x[r * 3 + f] - sum / 5) * (x[r * 3 + f] - sum / 5);
      mean.push_back(static_cast<float>(0.5 * sum / 5));
      variance.push_back(static_cast<float>(0.5 + 0.5 * squares / 5));
    }
    const std::string prefix = trainer.model().name() + "/bn/";
    EXPECT_LT(difference(trainer.weight(prefix + "moving_mean"), mean), 1e-5) << devices;
    EXPECT_LT(difference(trainer.weight(prefix + "moving_variance"), variance), 1e-5) << devices;
  }
}

// --- parameters --------------------------------------------------------------------------------------------------------------------------

Model wide_model() {
  return Sequential({Input({7}), Dense(10, {.activation = "tanh", .name = "cut"}), LayerNormalization(), Dropout(0.3),
                     Dense(5, {.name = "whole"}), BatchNormalization(), Dense(3, {.activation = "softmax", .name = "out"})},
                    {.name = "m"});
}

// Far above the limit, so the update has exactly the norm of the limit: every element of every variable counted once.
TEST(Parameters, ClippingByGlobalNormCountsEachElementOnce) {
  const Layouts one_cut = {{"m/cut/kernel", {std::nullopt, "model"}}}, rows = {{"m/(cut|out)/kernel", {"model", std::nullopt}}};
  for (const Layouts& layouts : {Layouts{}, one_cut, rows, kColumns})
    for (const DeviceMesh& mesh : {DeviceMesh({1, 1}, {"data", "model"}), DeviceMesh({2, 4}, {"data", "model"}),
                                   DeviceMesh({1, 8}, {"data", "model"}), DeviceMesh({3, 1}, {"data", "model"})}) {
      constexpr double kLimit = 1e-2, kRate = 1;
      Trainer trainer(wide_model(), {.optimizer = SGD(kRate, {.global_clipnorm = kLimit}), .loss = "sparse_categorical_crossentropy"},
                      distribution(mesh, layouts, "data"), {.batch_size = 6});
      auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), 6, 2);
      trainer.initialize();
      std::map<std::string, std::vector<float>> before;
      for (const VariableReport& v : trainer.variables()) before[v.path] = trainer.weight(v.path);
      trainer.train_batch(*data, first_samples(6));
      double squares = 0;
      for (const VariableReport& v : trainer.variables()) {
        if (!v.trainable) continue;
        std::vector<float> after = trainer.weight(v.path);
        for (size_t i = 0; i < after.size(); ++i) squares += std::pow(static_cast<double>(after[i]) - before[v.path][i], 2);
      }
      EXPECT_NEAR(std::sqrt(squares), kRate * kLimit, 1e-3 * kLimit) << to_string(mesh) << " " << layouts.size();
    }
}

TEST(Parameters, CopiesStayEqualInBits) {
  struct Case {
    Layouts layouts;
    DeviceMesh mesh;
    Optimizer optimizer;
  };
  for (const Case& c : {Case{kColumns, DeviceMesh({2, 3}, {"data", "model"}), Adam(0.01)},
                        Case{kRows, DeviceMesh({2, 4}, {"data", "model"}), SGD(0.1, {.momentum = 0.9, .global_clipnorm = 1.0})},
                        Case{{}, DeviceMesh({4, 2}, {"data", "model"}), AdamW(0.01)},
                        Case{kSharded, DeviceMesh({2, 2, 2}, {"data", "model", "more"}), Adam(0.01, {.clipnorm = 0.5})}}) {
    Trainer trainer(wide_model(), {.optimizer = c.optimizer, .loss = "sparse_categorical_crossentropy"},
                    distribution(c.mesh, c.layouts, "data"), {.batch_size = 13});
    auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), 31, 2);
    trainer.fit(*data, {.epochs = 4, .callbacks = {}});
    int copies = 0;
    for (const VariableReport& v : trainer.variables()) {
      const std::vector<float> whole = trainer.weight(v.path);
      int64_t held = 0;
      for (int64_t device = 0; device < c.mesh.size(); ++device) {
        const Box box = shard_box(v.sharding, v.type.shape, c.mesh, device);
        const std::vector<float> part = trainer.shard(v.path, device);
        ASSERT_EQ(static_cast<int64_t>(part.size()), box.shape.volume());
        held += box.shape.volume();
        for_each_run(v.type.shape, box.offset, box.shape, [&](int64_t at, int64_t from, int64_t count) {
          EXPECT_EQ(std::memcmp(whole.data() + at, part.data() + from, static_cast<size_t>(count) * sizeof(float)), 0)
              << v.path << " on device " << device;
        });
      }
      copies += held > v.type.shape.volume();
    }
    EXPECT_GT(copies, 0);
  }
}

// --- memory ------------------------------------------------------------------------------------------------------------------------------

// 2 MiB of weights, on devices of 1 MiB: refused on one, and on eight never whole anywhere, neither when made nor when saved or loaded.
TEST(Memory, AModelLargerThanADeviceIsMadeAndLoadedShardByShard) {
  auto model = [] {
    return Sequential({Input({256}), Dense(1024, {.activation = "relu", .name = "up"}), Dense(256, {.name = "down"})}, {.name = "big"});
  };
  const Compilation compilation = {.optimizer = SGD(0.01), .loss = "mse"};
  const TrainerOptions options{.batch_size = 4, .seed = 3, .device_memory = 1 << 20};
  const Layouts cut = {
      {"big/up/kernel", {std::nullopt, "model"}}, {"big/up/bias", {"model"}}, {"big/down/kernel", {"model", std::nullopt}}};
  Trainer alone(model(), compilation, one_device(), options);
  try {
    alone.prepare_fit(4);
    alone.initialize();
    FAIL() << "a model of 2 MiB fits 1 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_EQ(alone.allocated_bytes(), std::vector<int64_t>{0});
  }
  Scratch directory;
  const std::string path = directory / "weights.safetensors";
  Trainer trainer(model(), compilation, distribution(DeviceMesh(8, "model"), cut, "none"), options);
  trainer.prepare_fit(4);
  trainer.initialize();
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), 4, 2);
  trainer.train_batch(*data, first_samples(4));
  trainer.save_weights(path);
  Trainer loaded(model(), compilation, distribution(DeviceMesh(8, "model"), cut, "none"), options);
  loaded.load_weights(path);
  Trainer reference(model(), compilation, one_device(), {.batch_size = 4, .seed = 3});
  reference.initialize();
  reference.train_batch(*data, first_samples(4));
  for (const VariableReport& v : trainer.variables()) {
    EXPECT_EQ(trainer.weight(v.path), loaded.weight(v.path)) << v.path;
    EXPECT_LT(difference(trainer.weight(v.path), reference.weight(v.path)), 1e-5) << v.path;
  }
  for (int64_t bytes : trainer.allocated_bytes()) EXPECT_LE(bytes, options.device_memory);
  for (int64_t bytes : loaded.allocated_bytes()) EXPECT_LE(bytes, options.device_memory);
}

// --- meshes of one -----------------------------------------------------------------------------------------------------------------------

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> weights;
  std::vector<float> predictions;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome train(const Distribution& where) {
  Trainer trainer(wide_model(), {.optimizer = Adam(0.01), .loss = "sparse_categorical_crossentropy"}, where,
                  {.batch_size = 8, .threads = 1});
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), 19, 2);
  auto inputs = make_synthetic_dataset(trainer.fields(StepKind::kPredict), 19, 2);
  Outcome outcome;
  outcome.losses = trainer.fit(*data, {.epochs = 3, .callbacks = {}}).step_losses;
  for (const VariableReport& v : trainer.variables()) outcome.weights[v.path] = trainer.weight(v.path);
  trainer.predict(*inputs, [&](int, int64_t, int64_t count, const float* rows) {
    outcome.predictions.insert(outcome.predictions.end(), rows, rows + count * 3);
  });
  return outcome;
}

TEST(MeshOfOne, EveryDistributionGivesTheBitsOfOneDevice) {
  const Outcome want = train(one_device());
  const DeviceMesh square({1, 1}, {"data", "model"}), line({1, 4}, {"data", "model"});
  for (const Layouts& layouts : {Layouts{}, kColumns, kRows, kSharded})
    for (const char* batch : {"data", "model", "none"}) EXPECT_TRUE(train(distribution(square, layouts, batch)) == want) << batch;
  // Four devices that repeat one: the axis that cuts has size 1.
  EXPECT_TRUE(train(distribution(line, {}, "data")) == want);
  EXPECT_TRUE(train(distribution(line, {{".*/kernel", {"data", std::nullopt}}, {".*/bias", {"data"}}}, "data")) == want);
}

}  // namespace
}  // namespace espalier::nn

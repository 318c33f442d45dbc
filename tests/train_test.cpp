// Training on a mesh equals training on one device: losses step by step, final weights and predictions, on meshes of every shape, cut by
// data, by model and by both, with widths that no axis divides and a partial last batch. And two runs give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "espalier/data/synthetic.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/trainer.h"
#include "expect_error.h"

namespace espalier::nn {
namespace {

constexpr int64_t kSamples = 75, kBatch = 32, kSteps = 50;  // batches of 32, 32 and 11

Model uneven_model() {
  return Sequential({Input({13}), Dense(7, {.activation = "tanh"}), Dropout(0.25), Dense(101, {.activation = "gelu"}), BatchNormalization(),
                     Dense(7, {.activation = "relu"}), Dense(3, {.activation = "softmax"})},
                    {.name = "odd"});
}

Compilation compilation() { return {.optimizer = Adam(0.01), .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}}; }

using Layouts = std::vector<std::pair<std::string, TensorLayout>>;

struct Case {
  std::vector<int64_t> shape;
  std::vector<std::string> axes;
  Layouts layouts;
  std::string batch_axis;
};

Distribution distribution_of(const Case& c) {
  LayoutMap map(DeviceMesh(c.shape, c.axes));
  for (const auto& [key, layout] : c.layouts) map.insert(key, layout);
  return ModelParallel(map, c.batch_axis);
}

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> weights;
  std::vector<float> predictions;
};

Outcome train(const Distribution& distribution, TrainerOptions options = {}) {
  options.batch_size = kBatch;
  options.seed = 7;
  Trainer trainer(uneven_model(), compilation(), distribution, options);
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), kSamples, 3);
  Outcome outcome;
  outcome.losses = trainer.fit(*data, {.epochs = 99, .steps = kSteps, .callbacks = {}}).step_losses;
  for (const VariableReport& variable : trainer.variables()) outcome.weights[variable.path] = trainer.weight(variable.path);
  auto inputs = make_synthetic_dataset(trainer.fields(StepKind::kPredict), 37, 5);
  trainer.predict(*inputs, [&](int, int64_t first, int64_t count, const float* rows) {
    EXPECT_EQ(first * 3, static_cast<int64_t>(outcome.predictions.size()));
    outcome.predictions.insert(outcome.predictions.end(), rows, rows + count * 3);
  });
  std::vector<DeviceMemory> planned = trainer.memory();
  for (size_t d = 0; d < planned.size(); ++d) EXPECT_EQ(planned[d].arena, trainer.allocated_bytes()[d]);
  return outcome;
}

const Outcome& reference() {
  static const Outcome outcome = train(distribution_of({{1}, {"data"}, {}, "data"}));
  return outcome;
}

// The largest difference over the largest magnitude.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0, scale = 1e-6;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    scale = std::max(scale, std::abs(static_cast<double>(b[i])));
  }
  return most / scale;
}

const Layouts kColumns = {{".*/kernel", {std::nullopt, "model"}}, {".*/bias", {"model"}}};
const Layouts kRows = {{".*/kernel", {"model", std::nullopt}}};
const Layouts kBoth = {{".*/kernel", {"data", "model"}}, {".*/bias", {DimAxes{"model", "data"}}}};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int64_t n : {1, 2, 3, 4, 8}) {
    all.push_back({{n}, {"data"}, {}, "data"});
    all.push_back({{n}, {"model"}, kColumns, "none"});
    all.push_back({{n}, {"model"}, kRows, "none"});
    all.push_back({{n}, {"data"}, {{".*/kernel", {"data"}}}, "data"});  // fully sharded kernels
  }
  for (auto shape : {std::vector<int64_t>{2, 4}, {4, 2}, {1, 4}, {4, 1}}) {
    all.push_back({shape, {"data", "model"}, {}, "data"});
    all.push_back({shape, {"data", "model"}, kColumns, "data"});
    all.push_back({shape, {"data", "model"}, kRows, "data"});
    all.push_back({shape, {"data", "model"}, kBoth, "data"});
    all.push_back({shape, {"model", "data"}, kColumns, "data"});
  }
  all.push_back({{2, 2, 2}, {"data", "x", "model"}, kBoth, "data"});
  all.push_back({{2, 1, 3}, {"data", "x", "model"}, kBoth, "data"});
  return all;
}

class TrainOnMesh : public testing::TestWithParam<Case> {};

TEST_P(TrainOnMesh, EqualsOneDevice) {
  Outcome outcome = train(distribution_of(GetParam()));
  ASSERT_EQ(outcome.losses.size(), static_cast<size_t>(kSteps));
  for (size_t step = 0; step < outcome.losses.size(); ++step)
    ASSERT_NEAR(outcome.losses[step], reference().losses[step], 1e-5 * std::abs(reference().losses[step])) << "step " << step;
  for (const auto& [path, weight] : reference().weights) EXPECT_LT(difference(outcome.weights[path], weight), 1e-3) << path;
  EXPECT_LT(difference(outcome.predictions, reference().predictions), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Meshes, TrainOnMesh, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = std::to_string(info.index);
  for (size_t a = 0; a < info.param.shape.size(); ++a) name += "_" + info.param.axes[a] + std::to_string(info.param.shape[a]);
  return name + "_rules" + std::to_string(info.param.layouts.size());
});

TEST(Train, TwoRunsGiveTheSameBits) {
  Distribution distribution = distribution_of({{2, 4}, {"data", "model"}, kColumns, "data"});
  Outcome a = train(distribution), b = train(distribution);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.predictions, b.predictions);
}

TEST(Train, AxesOfSizeOneChangeNoBit) {
  Outcome plain = train(distribution_of({{2, 2}, {"data", "model"}, kColumns, "data"}));
  Outcome with = train(distribution_of({{1, 2, 1, 2}, {"a", "data", "b", "model"}, kColumns, "data"}));
  EXPECT_EQ(plain.losses, with.losses);
  EXPECT_EQ(plain.weights, with.weights);
}

TrainerOptions skipping(const std::string& pass) {
  TrainerOptions options;
  options.skip_passes = {pass};
  return options;
}

TEST(Train, EveryPassCanBeLeftOut) {
  Distribution distribution = distribution_of({{2, 2}, {"data", "model"}, kColumns, "data"});
  for (const std::string& pass : pass_names()) {
    Outcome outcome = train(distribution, skipping(pass));
    for (size_t step = 0; step < outcome.losses.size(); ++step)
      ASSERT_NEAR(outcome.losses[step], reference().losses[step], 1e-5 * std::abs(reference().losses[step])) << pass << " step " << step;
  }
}

TEST(Train, GradientsAndCommunicationAreCounted) {
  TrainerOptions options;
  options.batch_size = 30;
  options.keep_gradients = true;
  Trainer trainer(uneven_model(), compilation(), distribution_of({{2, 2}, {"data", "model"}, kColumns, "data"}), options);
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), 30, 3);
  std::vector<int64_t> samples(30);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<int64_t>(i);
  trainer.initialize();
  trainer.train_batch(*data, samples);
  EXPECT_EQ(trainer.communicated_bytes(), trainer.program(StepKind::kTrain, 30).communication_bytes);
  std::vector<float> gradient = trainer.gradient("odd/dense/kernel");
  EXPECT_EQ(gradient.size(), 13u * 7u);
  EXPECT_GT(difference(gradient, std::vector<float>(gradient.size(), 0.f)), 0);
}

// Replicas that each update a part of a large kernel, where it lies in it, and gather the others: every optimizer, even and uneven parts.
TEST(Train, PartsUpdatedInPlaceEqualOneDevice) {
  auto kernel = [](const Optimizer& optimizer, const Case& c) {
    Trainer trainer(Sequential({Input({256}), Dense(160, {.activation = "relu"}), Dense(16, {.activation = "softmax"})}, {.name = "wide"}),
                    {.optimizer = optimizer, .loss = "sparse_categorical_crossentropy"}, distribution_of(c), {.batch_size = 24, .seed = 7});
    auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), 24, 3);
    trainer.fit(*data, {.epochs = 4, .callbacks = {}});
    const std::vector<ValueId>& inside = trainer.program(StepKind::kTrain, 24).memory[0].inside;
    EXPECT_EQ(std::any_of(inside.begin(), inside.end(), [](ValueId id) { return id != kNoValue; }), c.shape[0] > 1);
    return trainer.weight("wide/dense/kernel");
  };
  for (const Optimizer& optimizer : std::vector<Optimizer>{SGD(0.1), SGD(0.1, {.momentum = 0.9}), Adam(0.001)}) {
    const std::vector<float> alone = kernel(optimizer, {{1}, {"data"}, {}, "data"});
    for (int64_t n : {2, 3, 4}) EXPECT_LT(difference(kernel(optimizer, {{n}, {"data"}, {}, "data"}), alone), 1e-4) << n << " devices";
  }
  EXPECT_LT(
      difference(kernel(Adam(0.001), {{2, 2}, {"data", "model"}, kColumns, "data"}), kernel(Adam(0.001), {{1}, {"data"}, {}, "data"})),
      1e-4);
}

// A data set whose disk fails when it has been read often enough.
class Failing : public Dataset {
 public:
  Failing(const Dataset& data, int reads) : Dataset(data.fields(), data.size()), data_(data), reads_(reads) {}
  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, float* out) const override {
    count();
    data_.read(field, samples, offset, shape, out);
  }
  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, int32_t* out) const override {
    count();
    data_.read(field, samples, offset, shape, out);
  }

 private:
  void count() const {
    if (++done_ == reads_) throw Error(ErrorKind::kStorage, "cannot read (Input/output error)", "'samples'");
  }
  const Dataset& data_;
  int reads_;
  mutable int done_ = 0;
};

TEST(Train, ADataSetThatFailsIsTheCauseAndTrainingMayGoOn) {
  Distribution distribution = distribution_of({{2, 2}, {"data", "model"}, kColumns, "data"});
  Trainer trainer(uneven_model(), compilation(), distribution, {.batch_size = kBatch, .seed = 7});
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), kSamples, 3);
  const Failing failing(*data, 9);  // in the third step: two fields, each read for two halves of the batch
  EXPECT_EQ(error_text([&] { trainer.fit(failing, {.epochs = 2, .callbacks = {}}); }), "cannot read (Input/output error): 'samples'");
  EXPECT_EQ(trainer.updates(), 2);
  EXPECT_TRUE(std::isfinite(trainer.fit(*data, {.epochs = 1, .callbacks = {}}).step_losses.back()));
  EXPECT_EQ(trainer.updates(), 5);
}

}  // namespace
}  // namespace espalier::nn

// Uses: nn
// A loss that is nan or infinite: the step writes nothing, on any mesh, and the first tensor that was not finite is named, be it a sample,
// a variable or a value of the forward pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "espalier/checkpoint/safetensors.h"
#include "espalier/data/dataset.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/trainer.h"
#include "expect_error.h"
#include "run_graph.h"
#include "scratch.h"

namespace espalier::nn {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

// Numbers as they are given: a data set of a user's own, which nobody has checked.
class Unchecked : public Dataset {
 public:
  Unchecked(const std::vector<FieldSpec>& fields, std::vector<std::vector<float>> rows)
      : Dataset(fields, static_cast<int64_t>(rows.size())), rows_(std::move(rows)) {}
  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, float* out) const override {
    for (int64_t sample : samples)
      for (int64_t i = 0; i < shape.volume(); ++i)
        *out++ = field == 0 ? rows_[static_cast<size_t>(sample)][static_cast<size_t>(offset[0] + i)] : 0.5f;
  }
  void read(int, std::span<const int64_t>, const Dims&, const Dims&, int32_t*) const override { FAIL() << "there are no classes here"; }

 private:
  std::vector<std::vector<float>> rows_;
};

// Names of layers are their own, so that messages do not depend on other tests. x (3) -> 4, exponential -> 1.
Model exponential_model() {
  return Sequential(
      {Input({3}), Dense(4, {.activation = "exponential", .name = "up"}), BatchNormalization({.name = "norm"}), Dense(1, {.name = "down"})},
      {.name = "net"});
}

struct Mesh {
  std::vector<int64_t> shape;
  std::vector<std::string> axes;
};
const std::vector<Mesh> kMeshes = {{{1}, {"data"}}, {{3}, {"data"}}, {{2}, {"model"}}, {{2, 2}, {"data", "model"}}};

Distribution distribution_of(const Mesh& mesh) {
  LayoutMap map(DeviceMesh(mesh.shape, mesh.axes));
  if (mesh.axes.back() == "model") map.insert(".*/kernel", {std::nullopt, "model"});
  return ModelParallel(map, mesh.axes.front() == "data" ? "data" : "none");
}

struct Net : Trainer {
  explicit Net(const Mesh& mesh, const Optimizer& optimizer = SGD(0.1, {.momentum = 0.9}), OnNan on_nan = OnNan::kStop)
      : Trainer(exponential_model(), {.optimizer = optimizer, .loss = "mean_squared_error"}, distribution_of(mesh),
                {.batch_size = 4, .on_nan = on_nan}) {
    initialize();
  }
};

std::vector<std::vector<float>> plain_rows() { return {{0.1f, 0.2f, 0.3f}, {0.3f, -0.1f, 0}, {0, 0.5f, -0.4f}, {0.2f, 0.2f, 0.1f}}; }
const std::vector<int64_t> kBatch = {0, 1, 2, 3};

std::vector<std::vector<float>> weights_of(Trainer& trainer) {
  std::vector<std::vector<float>> all;
  for (const VariableReport& variable : trainer.variables()) all.push_back(trainer.weight(variable.path));
  return all;
}

// What a batch of these rows says after one of plain ones, having changed nothing; training goes on afterwards.
std::string refusal(Trainer& trainer, std::vector<std::vector<float>> rows, const std::vector<int64_t>& batch = kBatch) {
  const Unchecked plain(trainer.fields(StepKind::kTrain), plain_rows()), data(trainer.fields(StepKind::kTrain), std::move(rows));
  trainer.train_batch(plain, kBatch);
  const auto before = weights_of(trainer);
  std::string text = "no error";
  try {
    trainer.train_batch(data, batch);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 10);
    text = error.what();
  }
  EXPECT_EQ(trainer.updates(), 1);
  EXPECT_EQ(weights_of(trainer), before);
  EXPECT_TRUE(std::isfinite(trainer.train_batch(plain, kBatch).loss));
  EXPECT_NE(weights_of(trainer), before);
  return text;
}

TEST(NonFinite, ASampleIsNamedByItsNumber) {
  for (const Mesh& mesh : kMeshes) {
    Net trainer(mesh);
    const std::string input = trainer.fields(StepKind::kTrain)[0].name;
    auto rows = plain_rows();
    rows[1][2] = kNan, rows[2][0] = -kInfinity;
    EXPECT_EQ(refusal(trainer, rows, {0, 2, 1, 3}), "loss is nan in step 2: sample 2 of input '" + input + "' holds -inf; clean the data");
  }
}

TEST(NonFinite, AValueIsNamedByOpAndLayer) {
  for (const Mesh& mesh : kMeshes) {
    for (const Optimizer& optimizer : {Optimizer(SGD(0.125)), Optimizer(Adam(0.125))}) {
      Net trainer(mesh, optimizer);
      auto rows = plain_rows();
      rows[2] = {3e4f, -3e4f, 3e4f};
      EXPECT_EQ(
          refusal(trainer, rows),
          "loss is nan in step 2: the first value that is not finite is the result of 'exp' in layer 'net/up'; lower the learning rate "
          "'0.125' or clip the gradients");
    }
  }
}

TEST(NonFinite, AVariableIsNamedWithTheStepThatMadeItSo) {
  for (const Mesh& mesh : kMeshes) {
    // The gradient is finite and the update is not: 1e38 times it.
    Net trainer(mesh, SGD(3e38));
    const Unchecked plain(trainer.fields(StepKind::kTrain), plain_rows());
    EXPECT_EQ(trainer.find_bad_variable(), std::nullopt);
    auto rows = plain_rows();
    for (auto& row : rows)
      for (float& value : row) value *= 10;
    const Unchecked steep(trainer.fields(StepKind::kTrain), rows);
    trainer.train_batch(steep, kBatch);
    ASSERT_TRUE(trainer.find_bad_variable().has_value());
    const std::string text = error_text([&] { trainer.train_batch(plain, kBatch); });
    EXPECT_EQ(text, "loss is nan in step 2: " + *trainer.find_bad_variable() +
                        " since the update of step 1; lower the learning rate '3e+38' or clip the gradients");
  }
}

TEST(NonFinite, WeightsThatWereLoadedSo) {
  Scratch scratch;
  for (const Mesh& mesh : kMeshes) {
    Net trainer(mesh);
    const std::string path = scratch / "w.safetensors";
    std::vector<TensorSpec> specs;
    for (const VariableReport& v : trainer.variables()) specs.push_back({v.path, NumberType::kF32, v.type.shape});
    SafetensorsWriter writer(local_files(), path, specs);
    for (const VariableReport& v : trainer.variables()) {
      std::vector<float> values = trainer.weight(v.path);
      if (v.path == "net/down/kernel") values.back() = kInfinity;
      writer.write(v.path, {Dims(v.type.shape.rank(), 0), v.type.shape}, values.data());
    }
    writer.commit();
    trainer.load_weights(path);
    const Unchecked plain(trainer.fields(StepKind::kTrain), plain_rows());
    const std::string text = error_text([&] { trainer.train_batch(plain, kBatch); });
    EXPECT_NE(text.find(" in step 1: variable 'net/down/kernel' holds inf before the first step; check the weights it starts from"),
              std::string::npos)
        << text;
  }
}

TEST(NonFinite, WarnGoesOn) {
  Net trainer({{2}, {"data"}}, SGD(0.1), OnNan::kWarn);
  auto rows = plain_rows();
  rows[3][0] = kNan;
  const Unchecked data(trainer.fields(StepKind::kTrain), rows);
  EXPECT_TRUE(std::isnan(trainer.train_batch(data, kBatch).loss));
  EXPECT_EQ(trainer.updates(), 1);
  EXPECT_EQ(trainer.find_bad_variable(), "variable 'net/up/kernel' holds nan");
}

TEST(NonFinite, AModelOfWhichNothingIsTrainedStopsToo) {
  Model model = Sequential({Input({3}), Dense(1, {.activation = "exponential", .name = "up", .trainable = false})}, {.name = "net"});
  Trainer trainer(model, {.optimizer = SGD(0.1), .loss = "mean_squared_error"}, distribution_of(kMeshes[1]), {.batch_size = 4});
  trainer.initialize();
  auto rows = plain_rows();
  for (auto& row : rows) row = {1e38f, 1e38f, 1e38f};
  for (auto& row : rows)
    for (size_t i = 0; i < 3; ++i) row[i] *= trainer.weight("net/up/kernel")[i] > 0 ? 1 : -1;
  const Unchecked data(trainer.fields(StepKind::kTrain), rows);
  EXPECT_EQ(
      error_text([&] { trainer.train_batch(data, kBatch); }),
      "loss is inf in step 1: the first value that is not finite is the result of 'exp' in layer 'net/up'; lower the learning rate '0.1' "
      "or clip the gradients");
}

// log(0) is -inf and selected away: the overflow behind it is to blame.
TEST(NonFinite, WhatComesToNothingIsNotBlamed) {
  Graph graph;
  Builder b(graph);
  ValueId x = graph.add_input(Role::kData, "x", {DType::kF32, {2}}), unused = graph.add_input(Role::kData, "unused", {DType::kF32, {2}});
  b.scope = "first";
  ValueId zero = b.op("subtract", {x, x}), logarithm = b.op("log", {zero});
  ValueId chosen = b.op("select", {zero, logarithm, x});
  b.scope = "second";
  ValueId large = b.op("exp", {b.op("square", {chosen})});
  b.scope = "loss";
  graph.add_output(Role::kResult, "loss", b.op("reduce_sum", {large}, {{"dims", std::vector<int64_t>{0}}, {"keep", int64_t{0}}}));
  b.op("abs", {unused});
  const ProbedForward probed(graph);
  EXPECT_EQ(probed.graph().inputs.size(), 1u);
  auto first_bad = [&](float value) {
    espalier::Tensors outputs = run_graph(probed.graph(), {{"x", {value, 1}}});
    std::vector<bool> finite;
    for (int p = 0; p < probed.count(); ++p) finite.push_back(outputs.at("result " + ProbedForward::output_name(p))[0] == 0);
    EXPECT_FALSE(finite[1]);  // the logarithm
    return probed.first_bad(finite).value_or("none");
  };
  EXPECT_EQ(first_bad(1), "none");
  EXPECT_EQ(first_bad(100), "the result of 'exp' in layer 'second'");
  EXPECT_EQ(first_bad(kNan), "the result of 'subtract' in layer 'first'");
}

}  // namespace
}  // namespace espalier::nn

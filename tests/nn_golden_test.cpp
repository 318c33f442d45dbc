// Uses: nn
// Layers, activations, losses, metrics, regularisers and optimizers against Keras itself: losses of each step, weights after them, metrics
// and predictions of small models (golden/nn.json, written by golden/make_nn.py, which builds the same models under the same names).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "espalier/nn/layers.h"
#include "espalier/nn/trace.h"
#include "run_graph.h"

namespace espalier::nn {
namespace {

using Arrays = espalier::Tensors;

struct Case {
  Model model;
  Compilation compilation;
  double x_scale = 2;
};

std::vector<float> wave(int64_t count, int salt, double scale = 1) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(scale) * static_cast<float>(std::sin(1.1 * static_cast<double>(i + 1) + 2.3 * salt)));
  return values;
}

int64_t class_of(int64_t row, int64_t classes) { return (row * 7 + 3) % classes; }

// i32 as the bits of a float, as run_graph takes it.
float bits(int64_t value) { return std::bit_cast<float>(static_cast<int32_t>(value)); }

std::vector<float> target(const Loss& loss, const TensorType& type, int64_t classes) {
  std::vector<float> values = wave(type.shape.volume(), 9, 0.8);
  for (int64_t i = 0; i < type.shape.volume(); ++i) {
    float& value = values[static_cast<size_t>(i)];
    if (loss.kind == Loss::Kind::kSparseCategoricalCrossentropy) value = bits(class_of(i, classes));
    if (loss.kind == Loss::Kind::kCategoricalCrossentropy) value = class_of(i / classes, classes) == i % classes ? 1 : 0;
    if (loss.kind == Loss::Kind::kBinaryCrossentropy) value = static_cast<float>((i * 5 + 1) % 3 % 2);
  }
  return values;
}

constexpr int64_t kBatch = 5;

// One model as its trainer sees it: state and data by name.
class Training {
 public:
  explicit Training(const Case& c) : case_(c) {
    int salt = 0;
    for (const Variable& variable : c.model.variables()) {
      int64_t count = variable.type.shape.volume();
      bool variance = variable.path.ends_with("variance");
      std::vector<float> values = variable.type.dtype == DType::kI32 ? std::vector<float>(1, 0) : wave(count, ++salt, variance ? 0.3 : 0.6);
      if (variable.type.dtype == DType::kI32) ++salt;
      for (float& value : values) value += variance ? 1 : 0;
      tensors_[variable.path] = values;
    }
    for (const ModelState& state : model_state(c.model, c.compilation))
      if (state.role == Role::kOptimizer) tensors_[state.name] = std::vector<float>(static_cast<size_t>(state.type.shape.volume()), 0.0f);
    tensors_["learning_rate"] = {static_cast<float>(c.compilation.optimizer.learning_rate)};
    fill_data();
  }

  // The step's results by name.
  Arrays step(StepKind kind) {
    if (kind == StepKind::kTrain) {
      ++step_number_;
      tensors_["step"] = {static_cast<float>(step_number_)};
      tensors_["random_step"] = {bits(step_number_)};
    }
    Step step = trace_step(case_.model, case_.compilation, kBatch, kind);
    Arrays results;
    for (auto& [name, values] : run_graph(step.graph, tensors_)) {
      size_t space = name.find(' ');
      (name.starts_with("result") ? results : tensors_)[name.substr(space + 1)] = std::move(values);
    }
    return results;
  }

  std::vector<float> value(const std::string& name) const { return tensors_.at(name); }

 private:
  void fill_data() {
    std::vector<std::string> inputs = case_.model.input_names(), outputs = case_.model.output_names();
    std::vector<OutputCompilation> losses = resolve(case_.compilation, outputs);
    for (const DataInput& data : trace_step(case_.model, case_.compilation, kBatch, StepKind::kEvaluate).data) {
      if (data.kind == DataInput::Kind::kSample) {
        auto salt = static_cast<int>(std::find(inputs.begin(), inputs.end(), data.source) - inputs.begin());
        tensors_[data.input] = wave(data.type.shape.volume(), salt, case_.x_scale);
        continue;
      }
      auto index = static_cast<size_t>(std::find(outputs.begin(), outputs.end(), data.source) - outputs.begin());
      tensors_[data.input] = target(*losses[index].loss, data.type, case_.model.output_shapes()[index].back());
    }
  }

  Case case_;
  Arrays tensors_;
  int step_number_ = 0;
};

// --- the models, as in make_nn.py ----------------------------------------------------------------------------------------------------

Compilation mse(Optimizer optimizer = SGD(0.1)) { return {.optimizer = std::move(optimizer), .loss = "mse"}; }
Compilation with(Losses loss, Metrics metrics = {}) {
  return {.optimizer = SGD(0.1), .loss = std::move(loss), .metrics = std::move(metrics)};
}
Model dense(int64_t units, const std::string& activation = "linear") {
  return Sequential({Input({4}), Dense(units, {.activation = activation})});
}
Model stack(const Dims& input, std::vector<Layer> layers) {
  layers.insert(layers.begin(), Input(input));
  return Sequential(layers);
}

Case loss_case(const std::string& what) {
  Metrics accuracy = {"accuracy"};
  if (what == "sparse softmax")
    return {dense(3, "softmax"), with("sparse_categorical_crossentropy", {"accuracy", "sparse_categorical_crossentropy"})};
  if (what == "sparse logits") return {dense(3), with(SparseCategoricalCrossentropy({.from_logits = true}), accuracy)};
  if (what == "sparse plain") return {dense(3, "softplus"), with("sparse_categorical_crossentropy", {"acc"})};
  if (what == "sparse time")
    return {stack({2, 4}, {Dense(3, {.activation = "softmax"})}), with("sparse_categorical_crossentropy", accuracy)};
  if (what == "sparse sum") return {dense(3, "softmax"), with(SparseCategoricalCrossentropy({.reduction = LossReduction::kSum}), accuracy)};
  if (what == "categorical softmax") return {dense(3, "softmax"), with("categorical_crossentropy", accuracy)};
  if (what == "categorical logits")
    return {dense(3), with(CategoricalCrossentropy({.from_logits = true, .label_smoothing = 0.1}), accuracy)};
  if (what == "categorical plain")
    return {dense(3, "softplus"), with(CategoricalCrossentropy({.label_smoothing = 0.2}), {"categorical_accuracy"})};
  if (what == "binary sigmoid") return {dense(1, "sigmoid"), with("binary_crossentropy", accuracy)};
  if (what == "binary wide") return {dense(3, "sigmoid"), with("bce", {"binary_accuracy", "BinaryCrossentropy"})};
  if (what == "binary logits") return {dense(2), with(BinaryCrossentropy({.from_logits = true, .label_smoothing = 0.1}), {"mae"})};
  if (what == "binary plain") return {dense(2, "softsign"), with(BinaryCrossentropy(), {"mse"})};
  if (what == "mse") return {dense(3), with("mean_squared_error", {"mse", "MAE", "accuracy", "mse"})};
  if (what == "mae") return {dense(3), with("MeanAbsoluteError")};
  if (what == "huber") return {dense(3), with(Huber(0.5))};
  Compilation sum = with(MeanSquaredError(LossReduction::kSum));
  sum.optimizer = SGD(0.01);
  return {dense(3), sum};
}

Case optimizer_case(const std::string& what) {
  static const std::map<std::string, Optimizer> table = {
      {"sgd", SGD()},
      {"momentum", SGD(0.05, {.momentum = 0.9})},
      {"nesterov", SGD(0.05, {.momentum = 0.9, .nesterov = true})},
      {"decay", SGD(0.05, {.momentum = 0.5, .weight_decay = 0.1})},
      {"clipnorm", SGD(0.1, {.clipnorm = 0.3})},
      {"global_clipnorm", SGD(0.1, {.global_clipnorm = 0.3})},
      {"global_clipnorm large", SGD(0.1, {.global_clipnorm = 1e3})},
      {"clipvalue", SGD(0.1, {.clipvalue = 0.05})},
      {"adam", Adam()},
      {"adam large", Adam(0.05, {.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-4})},
      {"adamw", AdamW(0.01)},
      {"adamw decay", AdamW(0.01, {.weight_decay = 0.3, .clipvalue = 0.1})},
  };
  return {stack({4}, {Dense(3, {.activation = "tanh"}), Dense(2)}), mse(table.at(what))};
}

Model merged(const Layer& merge) {
  Input a({2, 4}), b({3}), c({2, 1});
  return Model({a, b, c}, merge({Dense(3)(a), b, c}));
}

Case merge_case(const std::string& what) {
  if (what == "add") return {merged(Add()), mse()};
  if (what == "multiply") return {merged(Multiply()), mse()};
  if (what == "average") return {merged(Average()), mse()};
  if (what == "maximum") return {merged(Maximum()), mse()};
  if (what == "minimum") return {merged(Minimum()), mse()};
  Input a({2, 4});
  if (what == "subtract") {
    Input b({2, 3});
    return {Model({a, b}, Subtract()({Dense(3)(a), b})), mse()};
  }
  Input b({1, 3});
  return {Model({a, b}, Concatenate({.axis = 1})({Dense(3)(a), b})), mse()};
}

Model batch_normalization_frozen() {
  Layer norm = BatchNormalization();
  norm.freeze();
  return stack({4}, {Dense(3), norm, Dense(2)});
}

Model batch_normalization_shared() {
  BatchNormalization norm({.momentum = 0.5, .name = "bn"});
  Input a({3}), b({3});
  return Model({a, b}, Concatenate()({norm(a), norm(b)}));
}

Model shared() {
  Input x({4}, {.name = "x"});
  Dense d(4, {.activation = "tanh", .name = "shared"});
  return Model(x, Dense(2, {.name = "head"})(Add({.name = "sum"})({d(d(x)), x})));
}

Model nested(bool frozen) {
  Sequential block({Input({4}), Dense(4), BatchNormalization()}, {.name = "block", .trainable = !frozen});
  Input x({4}), y({4});
  Model inner(x, Dense(4, {.name = "a"})(x), {.name = "inner"});
  return Model(y, Dense(2, {.name = "b"})(inner(block(y))));
}

Case several() {
  Input x({4}, {.name = "x"}), z({2, 3}, {.name = "z"});
  Tensor h = Dense(4, {.activation = "tanh", .kernel_regularizer = "l2", .name = "h"})(Concatenate()({x, Flatten()(z)}));
  Tensor deep = Dense(2, {.name = "deep"})(h);
  Model model({x, z}, {Dense(3, {.activation = "softmax", .name = "kind"})(h), Dense(1, {.name = "size"})(deep)});
  return {model,
          {.optimizer = Adam(0.01),
           .loss = std::map<std::string, Loss>{{"kind", "sparse_categorical_crossentropy"}, {"size", "mse"}},
           .loss_weights = std::map<std::string, double>{{"kind", 0.5}, {"size", 2.0}},
           .metrics = std::map<std::string, std::vector<Metric>>{{"kind", {"accuracy"}}, {"size", {"mae", "mse"}}}}};
}

ActivationFunction gelu_approximate() {
  ActivationFunction gelu("gelu");
  gelu.approximate = true;
  return gelu;
}

Case layer_case(const std::string& name) {
  auto model = [&]() -> Model {
    if (name == "batch_normalization") return stack({4}, {Dense(3), BatchNormalization(), Dense(2)});
    if (name == "batch_normalization options")
      return stack({3, 4}, {BatchNormalization({.axis = 1, .momentum = 0.6, .epsilon = 0.1, .scale = false}), Dense(2)});
    if (name == "batch_normalization bare") return stack({2, 3}, {BatchNormalization({.center = false, .scale = false}), Dense(2)});
    if (name == "batch_normalization frozen") return batch_normalization_frozen();
    if (name == "batch_normalization shared") return batch_normalization_shared();
    if (name == "layer_normalization") return stack({4}, {Dense(5), LayerNormalization(), Dense(2)});
    if (name == "layer_normalization axes")
      return stack({3, 4}, {LayerNormalization({.axis = {1, 2}, .epsilon = 0.01, .center = false}), Dense(2)});
    if (name == "layer_normalization inner") return stack({3, 4}, {LayerNormalization({.axis = {1}}), Dense(2)});
    if (name == "normalization") return stack({4}, {Normalization(), Dense(2)});
    if (name == "normalization given")
      return stack({2, 4}, {Normalization({.mean = {{0.1, 0.2, -0.3, 0.4}}, .variance = {{1.0, 0.5, 2.0, 0.25}}}), Dense(2)});
    if (name == "normalization scalar")
      return stack({4}, {Normalization({.axis = std::nullopt, .mean = {{0.25}}, .variance = {{4.0}}, .invert = true}), Dense(2)});
    if (name == "normalization inner") return stack({3, 4}, {Normalization({.axis = {{1}}}), Dense(2)});
    if (name == "rescaling") return stack({4}, {Rescaling(0.25, {.offset = -1}), Dense(2)});
    if (name == "reshaping") return stack({2, 6}, {Reshape({3, -1}), Dense(2), Flatten(), Dense(2)});
    if (name == "flatten channels first") return stack({2, 3, 2}, {Flatten({.data_format = DataFormat::kChannelsFirst}), Dense(2)});
    if (name == "dropout none") return stack({4}, {Dropout(0), Dense(2)});
    if (name == "relu layer") return stack({4}, {Dense(6), ReLU({.max_value = 1.5, .negative_slope = 0.1, .threshold = 0.2}), Dense(2)});
    if (name == "relu slope") return stack({4}, {Dense(6), ReLU({.negative_slope = 0.1}), ReLU({.max_value = 0.4}), Dense(2)});
    if (name == "leaky elu") return stack({4}, {Dense(6), LeakyReLU(), ELU(0.5), Dense(2)});
    if (name == "softmax axis") return stack({3, 4}, {Dense(2), Softmax({.axis = 1}), Dense(2)});
    if (name == "gelu approximate") return stack({4}, {Dense(3), Activation(gelu_approximate())});
    if (name == "regularizers")
      return stack(
          {4}, {Dense(3, {.kernel_regularizer = "l2", .bias_regularizer = L1(0.05), .activity_regularizer = L1L2(0.02, 0.03)}), Dense(2)});
    if (name == "model shared") return shared();
    return nested(name == "model nested frozen");
  };
  return {model(), mse()};
}

Case make_case(const std::string& name) {
  auto after = [&](const std::string& prefix) { return name.substr(prefix.size()); };
  if (name.starts_with("activation ")) return {dense(3, after("activation ")), mse(), 3};
  if (name.starts_with("loss ")) return loss_case(after("loss "));
  if (name.starts_with("optimizer ")) return optimizer_case(after("optimizer "));
  if (name.starts_with("merge ")) return merge_case(after("merge "));
  return name == "model several" ? several() : layer_case(name);
}

const nlohmann::json& golden() {
  static const nlohmann::json file = nlohmann::json::parse(std::ifstream(ESPALIER_TEST_DIR "/golden/nn.json"));
  return file;
}

void expect_close(const std::vector<float>& ours, const std::vector<float>& keras, const std::string& what) {
  ASSERT_GE(ours.size(), keras.size()) << what;
  for (size_t i = 0; i < keras.size(); ++i) EXPECT_NEAR(ours[i], keras[i], 2e-6 + 2e-5 * std::abs(keras[i])) << what << " at " << i;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, AsKeras) {
  const nlohmann::json& keras = golden().at(GetParam());
  Case c = make_case(GetParam());
  std::vector<std::string> paths, trained;
  for (const Variable& variable : c.model.variables()) {
    paths.push_back(variable.path);
    if (variable.trainable) trained.push_back(variable.path);
  }
  EXPECT_EQ(paths, keras.at("paths").get<std::vector<std::string>>());
  EXPECT_EQ(trained, keras.at("trained").get<std::vector<std::string>>());

  Training run(c);
  for (float loss : keras.at("losses")) expect_close(run.step(StepKind::kTrain).at("loss"), {loss}, "loss");
  for (const auto& [path, values] : keras.at("weights").items())
    if (!path.ends_with("/count")) expect_close(run.value(path), values.get<std::vector<float>>(), path);

  Arrays evaluated = run.step(StepKind::kEvaluate);
  std::map<std::string, float> results;
  for (const StepResult& result : trace_step(c.model, c.compilation, kBatch, StepKind::kEvaluate).results) {
    float value = evaluated.at(result.output)[0];
    results[result.history] = result.kind == StepResult::Kind::kSum ? value / static_cast<float>(result.count) : value;
  }
  EXPECT_EQ(results.size(), keras.at("evaluated").size());
  for (const auto& [name, value] : keras.at("evaluated").items()) expect_close({results.at(name)}, {value.get<float>()}, name);

  Arrays predicted = run.step(StepKind::kPredict);
  std::vector<PredictionOutput> predictions = trace_step(c.model, c.compilation, kBatch, StepKind::kPredict).predictions;
  for (size_t i = 0; i < predictions.size(); ++i)
    expect_close(predicted.at(predictions[i].output), keras.at("predicted")[i].get<std::vector<float>>(), predictions[i].output);
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : golden().items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Keras, Golden, testing::ValuesIn(case_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace espalier::nn

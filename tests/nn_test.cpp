// Uses: nn
// Models as values: names and paths as Keras gives them, graphs of steps as text, first values of variables, dropout, summaries.
// What the graphs compute is compared with Keras in nn_golden_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "espalier/ir/text.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/model_def.h"
#include "espalier/nn/summary.h"
#include "espalier/nn/trace.h"
#include "run_graph.h"

namespace espalier::nn {
namespace {

using Arrays = espalier::Tensors;

// --- names ---------------------------------------------------------------------------------------------------------------------------

Model inner() {
  Input x({4});
  return Model(x, BatchNormalization({.name = "bn"})(Dense(4, {.name = "a"})(x)), {.name = "inner"});
}

Model stack() { return Sequential({Input({4}), Dense(3), BatchNormalization(), ReLU(), LeakyReLU(), Dense(2), Activation("relu")}); }

Model stack_in_graph() {
  Sequential block({Input({4}), Dense(3)}, {.name = "block"});
  Input x({4});
  return Model(x, Dense(2)(block(x)));
}

Model graph_in_stack() { return Sequential({Input({4}), inner(), Dense(2, {.name = "b"})}, {.name = "outer"}); }

Model graph_in_graph() {
  Model f = inner();
  Input x({4});
  return Model(x, Dense(2)(f(x)));
}

Model stack_in_stack() {
  Sequential s({Input({4}), Dense(3)}, {.name = "ss"}), t({Dense(3)}, {.name = "tt"});
  return Sequential({Input({4}), s, t, Dense(2)}, {.name = "outer"});
}

Model unnamed_stacks() {
  return Sequential({Input({4}), Sequential({Input({4}), Dense(3)}), Sequential({Input({3}), Dense(4)}), Dense(2)});
}

Model late_stack() {
  Sequential s({Dense(3), BatchNormalization()}, {.name = "late"});
  Input x({4});
  return Model(x, s(x));
}

Model stack_of_model_first() { return Sequential({inner(), Dense(2)}); }

Model shared_with_inner() {
  Dense d(4, {.name = "sh"});
  Input x({4}), y({4});
  Model f(x, d(x), {.name = "f"});
  return Model(y, d(f(y)));
}

Model frozen_inner() {
  Model f = inner();
  f.freeze();
  Input x({4});
  return Model(x, Dense(2)(f(x)));
}

Model depths() {
  Input x({4}, {.name = "x"});
  Tensor a = Dense(3, {.name = "a"})(x), b = Dense(3, {.name = "b"})(x), c = Dense(3, {.name = "c"})(b);
  return Model(x, {Add({.name = "s"})({a, c}), Dense(1, {.name = "e"})(a)});
}

Model shared_depths() {
  Input x({4}, {.name = "x"});
  Dense d(4, {.name = "d"});
  Tensor e = Dense(4, {.name = "e"})(x);
  return Model(x, {d(x), d(Dense(4, {.name = "f"})(e)), Dense(2, {.name = "g"})(d(e))});
}

Model two_inputs() {
  Input a({4}, {.name = "a"}), b({5}, {.name = "b"});
  return Model({a, b}, Dense(1, {.name = "h"})(Concatenate()({Dense(2, {.name = "q"})(b), Dense(2, {.name = "p"})(a)})));
}

const std::map<std::string, Model (*)()> kNamed = {{"stack", stack},
                                                   {"stack_in_graph", stack_in_graph},
                                                   {"graph_in_stack", graph_in_stack},
                                                   {"graph_in_graph", graph_in_graph},
                                                   {"stack_in_stack", stack_in_stack},
                                                   {"unnamed_stacks", unnamed_stacks},
                                                   {"late_stack", late_stack},
                                                   {"stack_of_model_first", stack_of_model_first},
                                                   {"shared_with_inner", shared_with_inner},
                                                   {"frozen_inner", frozen_inner},
                                                   {"depths", depths},
                                                   {"shared_depths", shared_depths},
                                                   {"two_inputs", two_inputs}};

TEST(Names, AsKeras) {
  nlohmann::json golden = nlohmann::json::parse(std::ifstream(ESPALIER_TEST_DIR "/golden/nn_names.json"));
  ASSERT_EQ(golden.size(), kNamed.size());
  for (const auto& [name, make] : kNamed) {
    const nlohmann::json& keras = golden.at(name);
    Model model = make();
    LayerTable table = model.layer_table();
    std::vector<std::string> layers, paths, trained;
    for (const Layer& layer : model.layers()) layers.push_back(table.at(&layer.def()).name);
    for (const Variable& variable : model.variables()) {
      paths.push_back(variable.path);
      if (variable.trainable) trained.push_back(variable.path);
    }
    EXPECT_EQ(layers, keras.at("layers").get<std::vector<std::string>>()) << name;
    EXPECT_EQ(paths, keras.at("paths").get<std::vector<std::string>>()) << name;
    EXPECT_EQ(trained, keras.at("trained").get<std::vector<std::string>>()) << name;
    // Keras counts the graph inside a Sequential as a functional model; ours is the only one of its kind here.
    std::string model_name = keras.at("name");
    EXPECT_EQ(model.name(), model_name.starts_with("functional") ? "functional" : model_name) << name;
  }
}

TEST(Names, SnakeCase) {
  EXPECT_EQ(snake_case("BatchNormalization"), "batch_normalization");
  EXPECT_EQ(snake_case("ReLU"), "re_lu");
  EXPECT_EQ(snake_case("LeakyReLU"), "leaky_re_lu");
  EXPECT_EQ(snake_case("ELU"), "elu");
  EXPECT_EQ(snake_case("InputLayer"), "input_layer");
  EXPECT_EQ(snake_case("Dense"), "dense");
}

TEST(Names, AutomaticOnesAvoidThoseGiven) {
  Sequential model({Input({4}), Dense(3, {.name = "dense"}), Dense(3), Dense(3, {.name = "dense_2"}), Dense(3)}, {.name = "m"});
  std::vector<std::string> layers;
  for (const Variable& variable : model.variables())
    if (variable.path.ends_with("kernel")) layers.push_back(variable.layer);
  EXPECT_EQ(layers, (std::vector<std::string>{"m/dense", "m/dense_1", "m/dense_2", "m/dense_3"}));
}

TEST(Names, EqualPathsOfNestedModelsAreToldApart) {
  auto branch = [](const std::string& name) {
    Input x({4});
    return Model(x, Dense(4, {.name = "a"})(x), {.name = name});
  };
  Model first = branch("first"), second = branch("second");
  Input x({4});
  Model model(x, Add()({first(x), second(x)}));
  std::set<std::string> paths;
  for (const Variable& variable : model.variables()) paths.insert(variable.path);
  EXPECT_EQ(paths, (std::set<std::string>{"a/kernel", "a/bias", "second/a/kernel", "second/a/bias"}));
}

TEST(Names, OutputsOfOneLayerAreToldApart) {
  Input x({4}, {.name = "x"});
  Dense d(4, {.name = "d"});
  Model model(x, {d(x), d(d(x))});
  EXPECT_EQ(model.output_names(), (std::vector<std::string>{"d", "d_1"}));
  EXPECT_EQ(model.input_names(), std::vector<std::string>{"x"});
}

TEST(Model, CopiesShareTheirLayers) {
  Model model = stack(), copy = model;
  model.layer("dense").freeze();
  EXPECT_FALSE(copy.variables()[0].trainable);
  EXPECT_TRUE(copy.variables()[2].trainable);
  model.layer("dense").unfreeze();
  EXPECT_TRUE(copy.variables()[0].trainable);
}

TEST(Model, AnInputThatNothingReadsIsNoInputOfTheStep) {
  Input x({4}, {.name = "x"}), y({3}, {.name = "y"});
  Model model({x, y}, Dense(2)(x));
  Step step = trace_step(model, {.loss = "mse"}, 4, StepKind::kTrain);
  ASSERT_EQ(step.data.size(), 2u);
  EXPECT_EQ(step.data[0].input, "input/x");
  EXPECT_EQ(step.data[1].input, "target/dense");
  EXPECT_EQ(model.input_names(), (std::vector<std::string>{"x", "y"}));
}

TEST(Model, MayBeVeryDeep) {
  std::vector<Layer> layers = {Input({2})};
  for (int i = 0; i < 100000; ++i) layers.push_back(Rescaling(1));
  Sequential model(layers);
  EXPECT_EQ(model.layers().back().class_name(), "Rescaling");
  EXPECT_EQ(model.layer_table().at(&model.layers().back().def()).name, "rescaling_99999");
}

// --- graphs --------------------------------------------------------------------------------------------------------------------------

Model small() { return Sequential({Input({4}, {.name = "x"}), Dense(3, {.activation = "softmax", .name = "d"})}, {.name = "m"}); }

// The softmax is not read: the loss is computed from what stands before it, the accuracy too.
TEST(Model, CallsThatNoModelHoldsMayBeVeryDeepToo) {
  const Layer relu = Activation("relu");
  Tensor x = Input({1});
  for (int i = 0; i < 300000; ++i) x = relu(x);
}

TEST(Formula, MayBeVeryDeep) {
  Graph graph;
  Builder builder(graph);
  Formula sum = 0;
  for (int i = 0; i < 100000; ++i) sum = sum + 1;
  Formula never_emitted = sum;
  for (int i = 0; i < 100000; ++i) never_emitted = never_emitted + 1;
  sum.emit(builder);
  EXPECT_EQ(graph.ops.size(), 200001u);
}

TEST(Graph, CrossEntropyOfLogits) {
  Compilation compilation = {.loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}};
  Step step = trace_step(small(), compilation, 2, StepKind::kEvaluate);
  EXPECT_EQ(print(step.graph), R"(graph m_evaluate
in %0 data "input/x" f32[2,4]
in %1 variable "m/d/kernel" f32[4,3]
in %2 variable "m/d/bias" f32[3]
in %3 data "target/d" i32[2]
%4:f32[2,3] = matmul(%0, %1) {factors="mk,kn->mn"} "m/d"
%5:f32[2,3] = add(%4, %2) "m/d"
%6:f32[2,3] = softmax(%5) {dim=1} "m/d"
%7:f32[2] = logsumexp(%5) {dims=[1], keep=0} "loss"
%8:f32[2] = softmax_cross_entropy(%5, %7, %3) "loss"
%9:f32[] = reduce_sum(%8) {dims=[0], keep=0} "loss"
%10:f32[] = constant() {value=2.0} "loss"
%11:f32[] = divide(%9, %10) "loss"
%12:i32[2] = argmax(%5) "metrics"
%13:f32[2] = equal_i32(%12, %3) "metrics"
%14:f32[] = reduce_sum(%13) {dims=[0], keep=0} "metrics"
out result "loss" %11
out result "metric/accuracy/sum" %14
)");
  ASSERT_EQ(step.results.size(), 2u);
  EXPECT_EQ(step.results[1].history, "accuracy");
  EXPECT_EQ(step.results[1].count, 2);
}

TEST(Graph, PredictionAppliesTheActivation) {
  Step step = trace_step(small(), {}, 2, StepKind::kPredict);
  EXPECT_EQ(print(step.graph), R"(graph m_predict
in %0 data "input/x" f32[2,4]
in %1 variable "m/d/kernel" f32[4,3]
in %2 variable "m/d/bias" f32[3]
%3:f32[2,3] = matmul(%0, %1) {factors="mk,kn->mn"} "m/d"
%4:f32[2,3] = add(%3, %2) "m/d"
%5:f32[2,3] = softmax(%4) {dim=1} "m/d"
out result "prediction/d" %5
)");
}

std::set<std::string> names_of(const Graph& graph, Role role) {
  std::set<std::string> names;
  for (const Output& output : graph.outputs)
    if (output.role == role) names.insert(output.name);
  return names;
}

TEST(Graph, StateAndGradientsOfTraining) {
  Model model = Sequential({Input({4}), Dense(3), BatchNormalization({.name = "bn"}), Dense(2, {.trainable = false})}, {.name = "m"});
  Compilation compilation = {.optimizer = Adam(), .loss = "mse"};
  Step step = trace_step(model, compilation, 2, StepKind::kTrain, {.keep_gradients = true});
  std::set<std::string> trained = {"m/dense/kernel", "m/dense/bias", "m/bn/gamma", "m/bn/beta"}, slots, gradients;
  for (const std::string& path : trained) {
    slots.insert({path + "/momentum", path + "/velocity"});
    gradients.insert("gradient/" + path);
  }
  EXPECT_EQ(names_of(step.graph, Role::kOptimizer), slots);
  EXPECT_EQ(names_of(step.graph, Role::kGradient), gradients);
  trained.insert({"m/bn/moving_mean", "m/bn/moving_variance"});
  EXPECT_EQ(names_of(step.graph, Role::kVariable), trained);

  std::vector<std::string> inputs, state;
  for (const espalier::Input& input : step.graph.inputs)
    if (input.role == Role::kVariable || input.role == Role::kOptimizer) inputs.push_back(input.name);
  for (const ModelState& entry : model_state(model, compilation)) state.push_back(entry.name);
  EXPECT_EQ(inputs, state);
  EXPECT_EQ(state.size(), 8u + 8u);
  EXPECT_EQ(names_of(trace_initialization(model, compilation, 1), Role::kOptimizer), slots);
}

TEST(Graph, TheSameModelGivesTheSameText) {
  auto text = [] {
    return print(trace_step(two_inputs(), {.optimizer = AdamW(), .loss = "mse", .metrics = {"mae"}}, 3, StepKind::kTrain).graph);
  };
  EXPECT_EQ(text(), text());
  EXPECT_EQ(print(parse_graph(text())), text());
}

TEST(Graph, AVariableThatTheLossDoesNotNeedHasNoGradient) {
  Input x({2}, {.name = "x"});
  Model model(x, {Dense(1, {.name = "used"})(x), Dense(1, {.name = "idle"})(x)});
  Compilation compilation = {.optimizer = SGD(1, {.momentum = 0.5}), .loss = std::map<std::string, Loss>{{"used", "mse"}}};
  Step step = trace_step(model, compilation, 1, StepKind::kTrain, {.keep_gradients = true});
  Arrays in = {{"used/kernel", {1, 2}}, {"used/bias", {0}},   {"idle/kernel", {3, 4}}, {"idle/bias", {5}},
               {"input/x", {1, 1}},     {"target/used", {1}}, {"learning_rate", {1}}};
  for (const std::string path : {"used/kernel", "used/bias", "idle/kernel", "idle/bias"})
    in[path + "/momentum"] = std::vector<float>(in[path].size(), 1.0f);
  Arrays out = run_graph(step.graph, in);
  EXPECT_EQ(out.at("gradient gradient/idle/kernel"), (std::vector<float>{0, 0}));
  EXPECT_EQ(out.at("variable idle/kernel"), (std::vector<float>{3.5, 4.5}));  // its momentum still runs out
  EXPECT_EQ(out.at("gradient gradient/used/kernel"), (std::vector<float>{4, 4}));
  EXPECT_EQ(step.data.size(), 2u);  // no target for an output without loss and metrics
}

TEST(Graph, LossesOfCertainPredictionsAreExact) {
  Step step = trace_step(small(), {.loss = "sparse_categorical_crossentropy"}, 1, StepKind::kEvaluate);
  Arrays in = {{"m/d/kernel", std::vector<float>(12, 0)},
               {"m/d/bias", {1000, -1000, 0}},
               {"input/x", {0, 0, 0, 0}},
               {"target/d", {std::bit_cast<float>(int32_t{1})}}};
  EXPECT_EQ(run_graph(step.graph, in).at("result loss")[0], 2000);  // from probabilities it would be at most 16.1
  in["target/d"] = {0.0f};
  EXPECT_EQ(run_graph(step.graph, in).at("result loss")[0], 0);
}

// --- first values and dropout --------------------------------------------------------------------------------------------------------

std::vector<float> first_value(const Initializer& initializer, int64_t rows, int64_t columns, uint64_t seed = 1) {
  Sequential model({Input({rows}), Dense(columns, {.kernel_initializer = initializer, .name = "d"})}, {.name = "m"});
  Graph graph = trace_initialization(model, {}, seed);
  Arrays state = {{"m/d/kernel", std::vector<float>(static_cast<size_t>(rows * columns))},
                  {"m/d/bias", std::vector<float>(static_cast<size_t>(columns))}};
  return run_graph(graph, state).at("variable m/d/kernel");
}

struct Spread {
  double mean, stddev, low, high;
};

Spread spread(const std::vector<float>& values) {
  double n = static_cast<double>(values.size()), mean = std::accumulate(values.begin(), values.end(), 0.0) / n, square = 0;
  for (float value : values) square += (value - mean) * (value - mean);
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {mean, std::sqrt(square / n), *low, *high};
}

TEST(Initializer, HasTheSpreadOfItsFans) {
  constexpr int64_t kRows = 300, kColumns = 200;  // fan_in 300, fan_out 200
  struct Want {
    const char* name;
    double stddev, limit;  // the limit where there is one
  };
  // A uniform in -a..a deviates by a / sqrt(3); a truncated normal ends two of its (wider) deviations out.
  const double cut = 2 / 0.87962566103423978;
  for (const Want& want :
       {Want{"glorot_uniform", std::sqrt(1 / 250.0), std::sqrt(3 / 250.0)},
        Want{"glorot_normal", std::sqrt(1 / 250.0), cut * std::sqrt(1 / 250.0)},
        Want{"he_uniform", std::sqrt(2 / 300.0), std::sqrt(6 / 300.0)}, Want{"he_normal", std::sqrt(2 / 300.0), cut * std::sqrt(2 / 300.0)},
        Want{"lecun_uniform", std::sqrt(1 / 300.0), std::sqrt(3 / 300.0)},
        Want{"lecun_normal", std::sqrt(1 / 300.0), cut * std::sqrt(1 / 300.0)}, Want{"random_uniform", 0.05 / std::sqrt(3), 0.05},
        Want{"random_normal", 0.05, 1}, Want{"truncated_normal", 0.05 * 0.87962566103423978, 0.1}}) {
    Spread s = spread(first_value(want.name, kRows, kColumns));
    EXPECT_NEAR(s.mean, 0, 5 * want.stddev / std::sqrt(kRows * kColumns)) << want.name;
    EXPECT_NEAR(s.stddev / want.stddev, 1, 0.02) << want.name;
    EXPECT_LE(std::max(-s.low, s.high), want.limit) << want.name;
    EXPECT_TRUE(want.limit == 1 || std::min(-s.low, s.high) >= 0.99 * want.limit) << want.name;
  }
  EXPECT_NEAR(spread(first_value(VarianceScaling(4, FanMode::kFanOut, ScalingDistribution::kUntruncatedNormal), kRows, kColumns)).stddev /
                  std::sqrt(4 / 200.0),
              1, 0.02);
}

TEST(Initializer, Orthogonal) {
  constexpr int kRows = 7, kColumns = 5;
  std::vector<float> q = first_value(Orthogonal(2), kRows, kColumns);
  for (int a = 0; a < kColumns; ++a)
    for (int b = 0; b < kColumns; ++b) {
      double product = 0;
      for (int r = 0; r < kRows; ++r) product += q[static_cast<size_t>(r * kColumns + a)] * q[static_cast<size_t>(r * kColumns + b)];
      EXPECT_NEAR(product, a == b ? 4 : 0, 1e-5) << a << " " << b;
    }
}

TEST(Initializer, ConstantsAndIdentity) {
  EXPECT_EQ(first_value(Ones(), 1, 2), (std::vector<float>{1, 1}));
  EXPECT_EQ(first_value("zeros", 1, 2), (std::vector<float>{0, 0}));
  EXPECT_EQ(first_value(Constant(0.25), 1, 2), (std::vector<float>{0.25, 0.25}));
  EXPECT_EQ(first_value(Identity(3), 2, 3), (std::vector<float>{3, 0, 0, 0, 3, 0}));
}

TEST(Initializer, FollowsFromSeedAndPathOnly) {
  auto kernels = [](const Model& model, uint64_t seed) {
    Arrays state;
    for (const ModelState& entry : model_state(model, {}))
      state[entry.name] = std::vector<float>(static_cast<size_t>(entry.type.shape.volume()));
    return run_graph(trace_initialization(model, {}, seed), state);
  };
  Model shorter = Sequential({Input({4}), Dense(4, {.name = "b"})}, {.name = "m"});
  Model longer = Sequential({Input({4}), Dense(4, {.name = "a"}), Dense(4, {.name = "b"})}, {.name = "m"});
  EXPECT_EQ(kernels(shorter, 3).at("variable m/b/kernel"), kernels(longer, 3).at("variable m/b/kernel"));
  EXPECT_NE(kernels(longer, 3).at("variable m/a/kernel"), kernels(longer, 3).at("variable m/b/kernel"));
  EXPECT_NE(kernels(shorter, 3).at("variable m/b/kernel"), kernels(shorter, 4).at("variable m/b/kernel"));
  GlorotUniform own;
  own.seed = 11;
  EXPECT_EQ(first_value(own, 4, 4, 1), first_value(own, 4, 4, 2));
}

// What dropout keeps at each step: the model's output for samples of ones.
std::vector<float> kept(const Layer& dropout, int32_t step, uint64_t seed, StepKind kind = StepKind::kTrain) {
  Sequential model({Input({50}), dropout}, {.name = "m"});
  Graph graph = trace_step(model, {.loss = "mse"}, 40, kind, {.seed = seed}).graph;
  for (const Op& op : graph.ops)
    if (op.def->name == "dropout" && op.phase == Phase::kForward) graph.add_output(Role::kResult, "kept", op.results[0]);
  if (kind == StepKind::kEvaluate) graph.add_output(Role::kResult, "kept", graph.inputs[0].value);
  Arrays in = {{"input/input_layer", std::vector<float>(2000, 1)},
               {"target/dropout", std::vector<float>(2000, 0)},
               {"random_step", {std::bit_cast<float>(step)}}};
  return run_graph(graph, in).at("result kept");
}

TEST(Dropout, DropsItsShareByStepAndSeed) {
  std::vector<float> mask = kept(Dropout(0.25), 1, 7);
  auto zeros = std::count(mask.begin(), mask.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(zeros), 500, 5 * std::sqrt(2000 * 0.25 * 0.75));
  for (float value : mask) EXPECT_TRUE(value == 0 || value == 1 / 0.75f) << value;
  EXPECT_EQ(mask, kept(Dropout(0.25), 1, 7));
  EXPECT_NE(mask, kept(Dropout(0.25), 2, 7));
  EXPECT_NE(mask, kept(Dropout(0.25), 1, 8));
  EXPECT_EQ(kept(Dropout(0.25, {.seed = 3}), 1, 7), kept(Dropout(0.25, {.seed = 3}), 1, 8));
  EXPECT_EQ(kept(Dropout(1), 1, 7), std::vector<float>(2000, 0));
}

TEST(Dropout, EachCallOfOneLayerDropsOthers) {
  Input x({9}, {.name = "x"});
  Dropout dropout(0.5);
  Graph graph = trace_step(Model(x, Add()({dropout(x), dropout(x)})), {.loss = "mse"}, 2, StepKind::kTrain).graph;
  std::set<int64_t> streams;
  for (const Op& op : graph.ops)
    if (op.def->name == "dropout" && op.phase == Phase::kForward) streams.insert(op.attrs.integer("stream"));
  EXPECT_EQ(streams.size(), 2u);
}

TEST(Dropout, InferenceKeepsAll) {
  for (StepKind kind : {StepKind::kEvaluate, StepKind::kPredict}) {
    Sequential model({Input({3}), Dropout(0.9)});
    Graph graph = trace_step(model, {.loss = "mse"}, 2, kind).graph;
    for (const Op& op : graph.ops) EXPECT_NE(op.def->name, "dropout");
    EXPECT_EQ(graph.find_input("random_step"), nullptr);
  }
}

// --- summary -------------------------------------------------------------------------------------------------------------------------

TEST(Summary, LayersAndVariables) {
  Sequential block({Input({4}), Dense(4)}, {.name = "block"});
  Sequential model({Input({4}), block, Dense(2, {.trainable = false})}, {.name = "m"});
  EXPECT_EQ(summary(model), R"(Model "m"
Layer (type)        Output shape  Parameters
────────────────────────────────────────────
block (Sequential)  (None, 4)             20
dense_1 (Dense)     (None, 2)             10
────────────────────────────────────────────
30 parameters (120 B), 20 trained, 10 not
)");
  VariableColumn bytes = {"Bytes", [](const Variable& variable) { return std::to_string(variable.type.bytes()); }};
  EXPECT_EQ(summary(model, {bytes}), R"(Model "m"
Layer (type)          Output shape  Parameters  Bytes
─────────────────────────────────────────────────────
block (Sequential)    (None, 4)             20
  block/dense/kernel    (4, 4)              16  64
  block/dense/bias      (4,)                 4  16
dense_1 (Dense)       (None, 2)             10
  m/dense_1/kernel      (4, 2)               8  32
  m/dense_1/bias        (2,)                 2  8
─────────────────────────────────────────────────────
30 parameters (120 B), 20 trained, 10 not
)");
}

}  // namespace
}  // namespace espalier::nn

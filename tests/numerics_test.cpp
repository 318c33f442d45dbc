// Where sharded training went wrong elsewhere, as small graphs and as exact numbers: pending sums, replicas, random numbers, losses over a
// cut vocabulary, shapes, meshes of one. Every graph runs with every layout of its inputs; one device, op by op, is the reference, or plain
// double arithmetic in the test.
// Uses: runtime passes
#include <fmt/format.h>

#include "espalier/passes/autodiff.h"
#include "mesh_run.h"

namespace espalier {
namespace {

const std::vector<DeviceMesh>& meshes() {
  static const std::vector<DeviceMesh> all = {{2, "a"}, {3, "a"}, {8, "a"}, {{2, 2}, {"a", "b"}}, {{2, 3}, {"a", "b"}}};
  return all;
}

Pins pins_of(const Graph& graph, const DeviceMesh& mesh, const std::vector<TensorLayout>& inputs,
             const std::vector<TensorLayout>& outputs = {}) {
  Pins pins;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    pins.inputs.push_back(bind(i < inputs.size() ? inputs[i] : TensorLayout(), graph.type(graph.inputs[i].value).shape, mesh, "test"));
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    pins.outputs.push_back(bind(i < outputs.size() ? outputs[i] : TensorLayout(), graph.type(graph.outputs[i].value).shape, mesh, "test"));
  return pins;
}

// Adds the gradient of result `loss` by every f32 input.
Graph differentiated(Graph graph) {
  std::vector<ValueId> wrt;
  for (const Input& input : graph.inputs)
    if (graph.type(input.value).dtype == DType::kF32) wrt.push_back(input.value);
  std::vector<ValueId> gradients = differentiate(graph, graph.find_output("loss")->value, wrt);
  for (size_t i = 0; i < wrt.size(); ++i)
    if (gradients[i] != kNoValue) graph.add_output(Role::kGradient, fmt::format("d{}", graph.value(wrt[i]).name), gradients[i]);
  return graph;
}

void expect_equal(const MeshRun& run, const Tensors& reference, const std::string& what) {
  for (const auto& [name, want] : reference) EXPECT_LT(distance(run.outputs.at(name), want), 1e-5) << name << " " << what;
}

// All combinations of layouts of the inputs, or `limit` random ones of more; the outputs' layouts are random.
void expect_equal_everywhere(const Graph& graph, const DeviceMesh& mesh, const Tensors& inputs, size_t limit = 120) {
  const Tensors reference = run_graph(graph, inputs);
  std::mt19937 random(1);
  std::vector<std::vector<Sharding>> choices;
  size_t combinations = 1;
  for (const Input& input : graph.inputs) {
    choices.push_back(all_layouts(mesh, graph.type(input.value).shape.rank()));
    combinations *= choices.back().size();
  }
  for (size_t i = 0; i < std::min(limit, combinations) && !testing::Test::HasFailure(); ++i) {
    Pins pins = random_pins(graph, mesh, random);
    size_t rest = combinations <= limit ? i : random() % combinations;
    for (size_t c = 0; c < choices.size(); ++c) {
      pins.inputs[c] = choices[c][rest % choices[c].size()];
      rest /= choices[c].size();
    }
    expect_equal(run_on_mesh(graph, mesh, pins, inputs), reference, to_string(pins, graph, mesh));
  }
}

// --- every layout of the inputs of small graphs ------------------------------------------------------------------------------------------

struct Program {
  std::string name, text;
};

class OnEveryLayout : public testing::TestWithParam<Program> {};

TEST_P(OnEveryLayout, EqualsOneDeviceWithItsGradients) {
  Graph graph = parse_graph(GetParam().text);
  if (graph.find_output("loss") != nullptr) graph = differentiated(graph);
  const Tensors inputs = random_inputs(graph, 5, 7);
  for (const DeviceMesh& mesh : meshes()) expect_equal_everywhere(graph, mesh, inputs);
}

const std::vector<Program> kPrograms = {
    {"sum_plus_ten", R"(
in %x data "x" f32[10]
%1 = reduce_sum(%x) {dims=[0], keep=0}
%ten = constant() {value=10.0}
%loss = add(%1, %ten)
out result "loss" %loss)"},
    {"sum_plus_row", R"(
in %x data "x" f32[4,10]
in %b data "b" f32[4]
%1 = reduce_sum(%x) {dims=[1], keep=0}
%2 = add(%1, %b)
%3 = square(%2)
%loss = reduce_sum(%3) {dims=[0], keep=0}
out result "y" %2
out result "loss" %loss)"},
    {"what_sums_may_not_meet", R"(
in %x data "x" f32[6,5]
in %y data "y" f32[5]
%s = reduce_sum(%x) {dims=[0], keep=0}
%relu = relu(%s)
%times = multiply(%s, %y)
%twice = multiply(%s, %s)
%exp = exp(%s)
%max = maximum(%s, %y)
%over = divide(%y, %exp)
%top = reduce_max(%s) {dims=[0], keep=0}
%1 = add(%relu, %times)
%2 = add(%1, %twice)
%3 = add(%2, %over)
%4 = subtract(%3, %max)
%5 = multiply(%4, %top)
%loss = reduce_sum(%5) {dims=[0], keep=0}
out result "y" %3
out result "top" %top
out result "loss" %loss)"},
    {"sums_and_maxima_pending_together", R"(
in %x data "x" f32[6,4]
%sum = reduce_sum(%x) {dims=[0], keep=1}
%max = reduce_max(%x) {dims=[0], keep=1}
%lse = logsumexp(%x) {dims=[0], keep=1}
%1 = add(%sum, %max)
%2 = multiply(%sum, %lse)
%3 = multiply(%max, %sum)
%4 = subtract(%lse, %sum)
%5 = concat(%max, %sum, %lse) {dim=0}
%6 = add(%1, %2)
%7 = add(%6, %3)
%8 = multiply(%7, %4)
%loss = reduce_sum(%8) {dims=[0, 1], keep=0}
out result "both" %5
out result "loss" %loss)"},
    {"maxima_of_maxima", R"(
in %x data "x" f32[3,5,4]
%1 = reduce_max(%x) {dims=[1], keep=0}
%2 = reduce_max(%1) {dims=[0], keep=0}
%3 = logsumexp(%x) {dims=[2], keep=0}
%4 = logsumexp(%3) {dims=[0, 1], keep=0}
%5 = reduce_sum(%2) {dims=[0], keep=0}
%loss = add(%4, %5)
out result "rows" %1
out result "loss" %loss)"},
    {"row_parallel_with_bias", R"(
in %x data "x" f32[5,6]
in %w variable "w" f32[6,3]
in %b variable "b" f32[3]
%1 = matmul(%x, %w) {factors="mk,kn->mn"}
%2 = add(%1, %b)
%3 = tanh(%2)
%loss = reduce_sum(%3) {dims=[0, 1], keep=0}
out result "y" %2
out result "loss" %loss)"},
    {"two_products_and_a_residual", R"(
in %x data "x" f32[5,4]
in %w variable "w" f32[4,7]
in %v variable "v" f32[7,4]
in %b variable "b" f32[4]
%1 = matmul(%x, %w) {factors="mk,kn->mn"}
%2 = relu(%1)
%3 = matmul(%2, %v) {factors="mk,kn->mn"}
%4 = add(%3, %b)
%5 = add(%4, %x)
%6 = square(%5)
%loss = reduce_sum(%6) {dims=[0, 1], keep=0}
out result "loss" %loss)"},
    {"norm_scale_between_cut_layers", R"(
in %x data "x" f32[4,6]
in %g variable "g" f32[6]
%1 = square(%x)
%2 = reduce_sum(%1) {dims=[1], keep=1}
%3 = rsqrt(%2)
%4 = multiply(%x, %3)
%5 = multiply(%4, %g)
%6 = tanh(%5)
%loss = reduce_sum(%6) {dims=[0, 1], keep=0}
out result "loss" %loss)"},
    {"softmax_over_a_cut_dim", R"(
in %x data "x" f32[3,7]
in %y data "y" f32[3,7]
%1 = softmax(%x) {dim=1}
%2 = softmax(%x) {dim=0}
%3 = multiply(%1, %y)
%4 = multiply(%2, %y)
%5 = add(%3, %4)
%loss = reduce_sum(%5) {dims=[0, 1], keep=0}
out result "loss" %loss)"},
    {"cross_entropy_over_cut_classes", R"(
in %x data "x" f32[4,7]
in %t data "t" i32[4]
%lse = logsumexp(%x) {dims=[1], keep=0}
%1 = softmax_cross_entropy(%x, %lse, %t)
%2 = take_label(%x, %t)
%3 = subtract(%1, %2)
%loss = reduce_sum(%3) {dims=[0], keep=0}
out result "each" %1
out result "loss" %loss)"},
    {"concat_of_4_and_12", R"(
in %x data "x" f32[4]
in %y data "y" f32[12]
%1 = concat(%x, %y) {dim=0}
%2 = square(%1)
%loss = reduce_sum(%2) {dims=[0], keep=0}
out result "whole" %1
out result "loss" %loss)"},
    {"shift_across_shard_edges", R"(
in %x data "x" f32[10,3]
%1 = slice(%x) {begin=[0, 0], size=[9, 3]}
%2 = pad(%1) {before=[1, 0], after=[0, 0]}
%3 = slice(%x) {begin=[0, 0], size=[1, 3]}
%4 = concat(%3, %1) {dim=0}
%5 = slice(%x) {begin=[1, 1], size=[4, 2], step=[2, 1]}
%6 = multiply(%2, %x)
%7 = multiply(%4, %6)
%8 = reduce_sum(%7) {dims=[0, 1], keep=0}
%9 = square(%5)
%10 = reduce_sum(%9) {dims=[0, 1], keep=0}
%loss = add(%8, %10)
out result "shifted" %2
out result "shifted too" %4
out result "loss" %loss)"},
    {"shift_of_a_pending_sum", R"(
in %x data "x" f32[5,6]
in %y data "y" f32[5]
%1 = reduce_sum(%x) {dims=[1], keep=0}
%2 = slice(%1) {begin=[0], size=[4]}
%3 = pad(%2) {before=[1], after=[0]}
%4 = reshape(%3) {shape=[1, 5]}
%5 = broadcast(%4) {shape=[3, 5], dims=[0, 1]}
%6 = transpose(%5) {permutation=[1, 0]}
%7 = negate(%6)
%8 = reduce_sum(%7) {dims=[1], keep=0}
%9 = multiply(%8, %y)
%loss = reduce_sum(%9) {dims=[0], keep=0}
out result "far" %8
out result "loss" %loss)"},
    {"reshape_6_4_to_24_to_4_6", R"(
in %x data "x" f32[6,4]
%1 = reshape(%x) {shape=[24]}
%2 = tanh(%1)
%3 = reshape(%2) {shape=[4, 6]}
%4 = square(%3)
%loss = reduce_sum(%4) {dims=[0, 1], keep=0}
out result "flat" %2
out result "y" %3
out result "loss" %loss)"},
    {"reshape_of_products", R"(
in %x data "x" f32[2,3,4]
in %w variable "w" f32[4,6]
%1 = matmul(%x, %w) {factors="btd,de->bte"}
%2 = reshape(%1) {shape=[6, 2, 3]}
%3 = reduce_sum(%2) {dims=[1], keep=0}
%4 = reshape(%3) {shape=[18]}
%5 = reduce_max(%4) {dims=[0], keep=0}
%6 = logsumexp(%2) {dims=[0, 2], keep=0}
%7 = reduce_sum(%6) {dims=[0], keep=0}
%loss = add(%5, %7)
out result "flat" %4
out result "loss" %loss)"},
};

INSTANTIATE_TEST_SUITE_P(Numerics, OnEveryLayout, testing::ValuesIn(kPrograms), [](const auto& info) { return info.param.name; });

// --- exact numbers
// -------------------------------------------------------------------------------------------------------------------------

std::vector<float> counting(int64_t n) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<float>(i));
  return numbers;
}

TEST(PendingSums, TenIsAddedOnce) {
  Graph graph = parse_graph(kPrograms[0].text);
  for (int64_t n : {1, 2, 3, 4, 8, 11}) {
    DeviceMesh mesh(n, "a");
    EXPECT_EQ(run_on_mesh(graph, mesh, pins_of(graph, mesh, {{"a"}}), {{"x", counting(10)}}).outputs.at("result loss")[0], 55);
  }
}

// Each of 7 devices but the first three has no element: what it adds to a maximum or a log-sum-exp of negative numbers is nothing.
TEST(PendingSums, EmptyShardsAddNothingToAMaximum) {
  Graph graph = parse_graph(R"(
in %x data "x" f32[3]
%1 = reduce_max(%x) {dims=[0], keep=0}
%2 = logsumexp(%x) {dims=[0], keep=0}
%3 = reduce_sum(%x) {dims=[0], keep=0}
out result "max" %1
out result "lse" %2
out result "sum" %3)");
  DeviceMesh mesh(7, "a");
  Tensors outputs = run_on_mesh(graph, mesh, pins_of(graph, mesh, {{"a"}}), {{"x", {-100, -200, -100}}}).outputs;
  EXPECT_EQ(outputs.at("result max")[0], -100);
  EXPECT_NEAR(outputs.at("result lse")[0], -100 + std::log(2), 1e-5);
  EXPECT_EQ(outputs.at("result sum")[0], -400);
}

TEST(PendingSums, InfinitiesStayWhatTheyAre) {
  Graph graph = parse_graph(R"(
in %x data "x" f32[4,3]
%1 = reduce_max(%x) {dims=[0], keep=0}
%2 = logsumexp(%x) {dims=[0], keep=0}
out result "max" %1
out result "lse" %2)");
  const float inf = INFINITY;
  const Tensors inputs = {{"x", {-inf, 1, inf, -inf, -inf, 2, -inf, -inf, 3, -inf, 2, 4}}};
  for (const DeviceMesh& mesh : meshes()) expect_equal_everywhere(graph, mesh, inputs);
}

// --- random numbers
// ------------------------------------------------------------------------------------------------------------------------

TEST(Random, NumbersDoNotDependOnTheCut) {
  for (const char* op : {"random_uniform", "random_normal"}) {
    const bool uniform = std::string(op) == "random_uniform";
    Graph graph = parse_graph(fmt::format("%0 = {}() {{shape=[8,8], {}, seed=7, stream=3}}\nout result \"y\" %0", op,
                                          uniform ? "low=-1.0, high=1.0" : "mean=0.0, stddev=1.0, truncated=0"));
    const std::vector<float> want = run_graph(graph, {}).at("result y");
    for (int64_t n : {1, 3, 4, 8})
      for (const TensorLayout& layout : {TensorLayout{}, TensorLayout{"a"}, TensorLayout{std::nullopt, "a"}}) {
        DeviceMesh mesh(n, "a");
        EXPECT_EQ(run_on_mesh(graph, mesh, pins_of(graph, mesh, {}, {layout}), {}).outputs.at("result y"), want) << op << n;
      }
  }
}

TEST(Random, TheDropoutMaskIsTheReferences) {
  Graph graph = differentiated(parse_graph(R"(
in %x data "x" f32[6,9]
in %step scalar "step" i32[]
%1 = dropout(%x, %step) {rate=0.4, seed=11, stream=2}
%2 = square(%1)
%loss = reduce_sum(%2) {dims=[0, 1], keep=0}
out result "y" %1
out result "loss" %loss)"));
  const Tensors inputs = random_inputs(graph, 3, 100);
  const Tensors reference = run_graph(graph, inputs);
  DeviceMesh mesh({2, 4}, {"data", "model"});
  for (const TensorLayout& layout : std::vector<TensorLayout>{{std::nullopt, "model"}, {"model"}, {"data", "model"}, {"data"}}) {
    MeshRun run = run_on_mesh(graph, mesh, pins_of(graph, mesh, {layout}, {layout, {}, layout}), inputs);
    EXPECT_EQ(run.outputs.at("result y"), reference.at("result y")) << to_string(layout);
    EXPECT_EQ(run.outputs.at("gradient dx"), reference.at("gradient dx")) << to_string(layout);
  }
}

// --- a loss over a cut vocabulary --------------------------------------------------------------------------------------------------------

TEST(CutVocabulary, LossAndGradientAreThoseOfTheWhole) {
  constexpr int64_t kClasses = 50257, kRows = 5;
  Graph graph = differentiated(parse_graph(fmt::format(R"(
in %x data "x" f32[{0},{1}]
in %t data "t" i32[{0}]
%lse = logsumexp(%x) {{dims=[1], keep=0}}
%1 = softmax_cross_entropy(%x, %lse, %t)
%loss = reduce_sum(%1) {{dims=[0], keep=0}}
out result "loss" %loss)",
                                                       kRows, kClasses)));
  Tensors inputs = random_inputs(graph, 9, kClasses);
  const std::vector<int32_t> labels = {0, kClasses - 1, 25128, 25129, 6283};  // first, last, and on both sides of edges
  std::memcpy(inputs["t"].data(), labels.data(), kRows * sizeof(int32_t));
  const std::vector<float>& x = inputs["x"];
  double loss = 0;
  std::vector<float> gradient(x.size());
  for (size_t r = 0; r < kRows; ++r) {
    const float* row = x.data() + r * kClasses;
    double sum = 0;
    for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(static_cast<double>(row[c]));
    loss += std::log(sum) - row[labels[r]];
    for (int64_t c = 0; c < kClasses; ++c)
      gradient[r * kClasses + static_cast<size_t>(c)] = static_cast<float>(std::exp(static_cast<double>(row[c])) / sum - (c == labels[r]));
  }
  for (int64_t n : {2, 8}) {
    DeviceMesh mesh(n, "v");
    const TensorLayout columns = {std::nullopt, "v"};
    MeshRun run = run_on_mesh(graph, mesh, pins_of(graph, mesh, {columns}, {{}, columns}), inputs);
    EXPECT_NEAR(run.outputs.at("result loss")[0], loss, 1e-5 * loss);
    const std::vector<float>& got = run.outputs.at("gradient dx");
    for (size_t i = 0; i < gradient.size(); ++i) ASSERT_NEAR(got[i], gradient[i], 1e-6) << i;
    // Rows of numbers travel, never the classes: a few all-reduces of 5 floats.
    for (const Collective& collective : run.compiled->collectives)
      EXPECT_LE(collective.bytes, 2 * kRows * 4 * (n - 1)) << collective.kind << " " << collective.reason;
    for (const Value& value : run.compiled->graph.values)  // and no column is added to make the parts even
      EXPECT_TRUE(value.type.shape.rank() != 2 || value.type.shape[1] == kClasses);
  }
}

// --- shapes
// ----------------------------------------------------------------------------------------------------------------------------------

// (6, 4) with dim 0 cut by 4 holds 2, 2, 1, 1 rows: (24) cut by 4 holds 6 each, so elements have to move, and the list says which.
TEST(Shapes, WhatAReshapeCommunicatesIsListed) {
  Graph graph = parse_graph(R"(
in %x data "x" f32[6,4]
%1 = reshape(%x) {shape=[24]}
%2 = reshape(%1) {shape=[4, 6]}
out result "flat" %1
out result "y" %2)");
  DeviceMesh mesh(4, "a");
  const Tensors inputs = {{"x", counting(24)}};
  MeshRun run = run_on_mesh(graph, mesh, pins_of(graph, mesh, {{"a"}}, {{"a"}, {"a"}}), inputs);
  EXPECT_EQ(run.outputs.at("result flat"), counting(24));
  EXPECT_EQ(run.outputs.at("result y"), counting(24));
  ASSERT_FALSE(run.compiled->collectives.empty());
  int64_t received = 0;
  for (const Collective& collective : run.compiled->collectives) {
    EXPECT_EQ(collective.axes, std::vector<std::string>{"a"});
    EXPECT_FALSE(collective.reason.empty());
    received += collective.bytes;
  }
  EXPECT_LE(received, (24 - 4) * 4);  // one gather at the most: the last device holds 4 elements and lacks 20
  // A cut that falls on whole parts costs nothing.
  DeviceMesh two(2, "a");
  EXPECT_TRUE(run_on_mesh(graph, two, pins_of(graph, two, {{"a"}}, {{"a"}, {"a"}}), inputs).compiled->collectives.empty());
}

// --- state
// ---------------------------------------------------------------------------------------------------------------------------------

// The old value is read by others in the step that replaces it, in every layout and for several steps: nothing is read after its reuse.
TEST(Lifetimes, StateGivenToTheStepIsReadBeforeItIsReplaced) {
  Graph graph = parse_graph(R"(
in %w variable "w" f32[5,4]
in %v variable "v" f32[5,4]
in %x data "x" f32[5,4]
in %lr scalar "lr" f32[]
%1 = sgd_update(%w, %x, %lr)
%2 = multiply(%w, %v)
%3 = sgd_update(%v, %2, %lr)
%4 = reduce_sum(%w) {dims=[0], keep=0}
%5 = add(%3, %1)
out variable "w" %1
out variable "v" %3
out result "old" %4
out result "new" %5)");
  const Tensors inputs = random_inputs(graph, 4);
  Tensors now = inputs, reference;
  for (int step = 0; step < 3; ++step) {
    reference = run_graph(graph, now);
    now["w"] = reference.at("variable w"), now["v"] = reference.at("variable v");
  }
  for (const DeviceMesh& mesh : meshes())
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::mt19937 random(seed);
      Pins pins = random_pins(graph, mesh, random);
      expect_equal(run_on_mesh(graph, mesh, pins, inputs, 3), reference, to_string(pins, graph, mesh));
    }
}

// --- meshes of one
// ---------------------------------------------------------------------------------------------------------------------------

TEST(MeshOfOne, GivesTheBitsOfOneDevice) {
  for (const Program& program : kPrograms) {
    Graph graph = parse_graph(program.text);
    if (graph.find_output("loss") != nullptr) graph = differentiated(graph);
    const Tensors inputs = random_inputs(graph, 6, 7);
    DeviceMesh plain(1, "none");
    const Tensors want = run_on_mesh(graph, plain, pins_of(graph, plain, {}), inputs).outputs;
    for (const DeviceMesh& mesh : {DeviceMesh(1, "a"), DeviceMesh({1, 1}, {"a", "b"}), DeviceMesh({1, 4}, {"a", "b"})}) {
      std::vector<TensorLayout> inputs_cut, outputs_cut;
      for (const Input& input : graph.inputs)
        inputs_cut.push_back(graph.type(input.value).shape.rank() > 0 ? TensorLayout{"a"} : TensorLayout{});
      for (const Output& output : graph.outputs)
        outputs_cut.push_back(graph.type(output.value).shape.rank() > 0 ? TensorLayout{"a"} : TensorLayout{});
      MeshRun run = run_on_mesh(graph, mesh, pins_of(graph, mesh, inputs_cut, outputs_cut), inputs);
      EXPECT_EQ(run.outputs, want) << program.name << " " << to_string(mesh);
      EXPECT_TRUE(run.compiled->collectives.empty()) << program.name;
    }
  }
}

TEST(MeshOfOne, AnAxisOfOneBesideARealOneChangesNoBit) {
  for (const Program& program : kPrograms) {
    Graph graph = parse_graph(program.text);
    const Tensors inputs = random_inputs(graph, 8, 7);
    DeviceMesh plain(4, "b"), with({1, 4}, {"a", "b"});
    std::vector<TensorLayout> cut, cut_twice;
    for (const Input& input : graph.inputs) {
      const bool scalar = graph.type(input.value).shape.rank() == 0;
      cut.push_back(scalar ? TensorLayout{} : TensorLayout{"b"});
      cut_twice.push_back(scalar ? TensorLayout{} : TensorLayout{{"a", "b"}});
    }
    EXPECT_EQ(run_on_mesh(graph, with, pins_of(graph, with, cut_twice), inputs).outputs,
              run_on_mesh(graph, plain, pins_of(graph, plain, cut), inputs).outputs)
        << program.name;
  }
}

}  // namespace
}  // namespace espalier

// Uses: runtime passes
// Random graphs with random layouts of every input and output on random meshes equal one device. Prints its seed; --seed=N starts there,
// --rounds=N makes N graphs.
#include <fmt/format.h>

#include "espalier/passes/autodiff.h"
#include "mesh_run.h"
#include "random_graph.h"

namespace espalier {

unsigned first_seed = std::random_device()();
int rounds = 200;

namespace {

DeviceMesh random_mesh(std::mt19937& random) {
  static const std::vector<std::vector<int64_t>> shapes = {{1},    {2},    {3},    {4},    {5},    {7},       {8},      {2, 2},
                                                           {2, 3}, {3, 2}, {2, 4}, {4, 2}, {1, 4}, {2, 1, 3}, {2, 2, 2}};
  const std::vector<int64_t>& shape = shapes[random() % shapes.size()];
  const std::vector<std::string> names = {"a", "b", "c"};
  return DeviceMesh(shape, {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shape.size())});
}

// The sum of all that a graph gives, differentiated by its data and variables.
Graph with_gradients(const Graph& forward) {
  Graph graph = forward;
  Builder builder(graph);
  ValueId loss = builder.op("constant", {}, {{"value", 0.0}});
  for (const Output& output : forward.outputs) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < graph.type(output.value).shape.rank(); ++d) dims.push_back(d);
    loss = builder.op("add", {loss, builder.op("reduce_sum", {output.value}, {{"dims", dims}, {"keep", int64_t{0}}})});
  }
  std::vector<ValueId> wrt;
  for (const Input& input : graph.inputs) wrt.push_back(input.value);
  std::vector<ValueId> gradients = differentiate(graph, loss, wrt);
  graph.add_output(Role::kResult, "loss", loss);
  for (size_t i = 0; i < wrt.size(); ++i)
    if (gradients[i] != kNoValue) graph.add_output(Role::kGradient, "gradient/" + graph.inputs[i].name, gradients[i]);
  return graph;
}

// Rounding grows along a graph, and a comparison turns it into a jump. What one part in a million of the inputs does tells how much; sums
// in another order may do a multiple of it.
double tolerance(const Tensors& reference, const Tensors& nearby, const std::string& name) {
  return 2e-5 + 20 * distance(nearby.at(name), reference.at(name));
}

void check(unsigned seed) {
  SCOPED_TRACE(fmt::format("--seed={}", seed));
  std::mt19937 random(seed);
  const int64_t n = 1 + static_cast<int64_t>(random() % 7);
  const Updates updates = random() % 2 == 0 ? Updates::kSome : Updates::kNone;
  Graph graph = RandomGraph(seed, n, Views::kSome, Kinds::kMany, updates).make(3 + static_cast<int>(random() % 40));
  if (graph.outputs.empty()) return;
  if (updates == Updates::kNone) graph = with_gradients(graph);
  const DeviceMesh mesh = random_mesh(random);
  const Pins pins = random_pins(graph, mesh, random);
  SCOPED_TRACE(to_string(pins, graph, mesh));
  Tensors inputs = random_inputs(graph, seed), near = inputs;
  for (auto& [name, words] : near)
    for (float& word : words) word *= 1 + 1e-6f * static_cast<float>(static_cast<int>(random() % 3) - 1);
  const Tensors reference = run_graph(graph, inputs), nearby = run_graph(graph, near);
  MeshRun run;
  try {
    CompileOptions options{.skip = {}, .threads = 1 + static_cast<int>(random() % 2)};
    if (random() % 4 == 0) options.skip.insert(pass_names()[random() % pass_names().size()]);
    run = run_on_mesh(graph, mesh, pins, inputs, 1, options);
  } catch (const Error& error) {
    if (std::string(error.what()).find("exchange") == std::string::npos) ADD_FAILURE() << error.what();
    return;
  }
  for (const auto& [name, want] : reference) EXPECT_LE(distance(run.outputs.at(name), want), tolerance(reference, nearby, name)) << name;
  if (testing::Test::HasFailure()) std::cerr << print(graph) << "----\n" << print(run.compiled->graph);
}

TEST(RandomGraphs, OnRandomMeshesEqualOneDevice) {
  std::cout << fmt::format("--seed={} --rounds={}\n", first_seed, rounds);
  for (int round = 0; round < rounds && !HasFailure(); ++round) check(first_seed + static_cast<unsigned>(round));
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--seed=")) espalier::first_seed = static_cast<unsigned>(std::stoul(argument.substr(7)));
    if (argument.starts_with("--rounds=")) espalier::rounds = std::stoi(argument.substr(9));
  }
  return RUN_ALL_TESTS();
}

// Uses: passes
// Passes as text: every file of cases/ is a program, the passes to run on it and the program that comes out.
//
//   // run: simplify                              one pass a line, in order
//   // run: differentiate loss wrt w, b           the output's name, the inputs' names; adds outputs `gradient "w"`
//   // run: partition                             pins are the shardings written on inputs and on the values of outputs
//   (the program)
//   // expect:
//   (the program that comes out; in bad_*.ir the error's text)
//
// `pass_test --update` writes what comes out into the files; look at the difference before you commit it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <sstream>

#include "espalier/ir/text.h"
#include "espalier/passes/absorb.h"
#include "espalier/passes/autodiff.h"
#include "espalier/passes/complete_layouts.h"
#include "espalier/passes/fuse.h"
#include "espalier/passes/partition.h"
#include "espalier/passes/schedule.h"
#include "espalier/passes/simplify.h"
#include "random_graph.h"
#include "run_graph.h"
#include "texts.h"

namespace espalier {
namespace {

bool update_cases = false;

struct Case {
  std::string path, head, expected;  // head: everything up to the separator, which is program and comments in one
  std::vector<std::string> passes;
  bool bad = false;
};

constexpr const char* kSeparator = "// expect:\n";

Case read_case(const std::string& path) {
  const std::string text = content_of(path);
  size_t split = text.find(kSeparator);
  Case one{.path = path, .head = text.substr(0, split), .expected = "", .passes = {}};
  if (split != std::string::npos) one.expected = text.substr(split + std::string(kSeparator).size());
  one.bad = std::filesystem::path(path).filename().string().starts_with("bad_");
  std::istringstream lines(one.head);
  constexpr std::string_view kRun = "// run: ";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kRun)) one.passes.push_back(line.substr(kRun.size()));
  return one;
}

Graph run_differentiate(Graph graph, const std::string& arguments) {
  std::string loss = arguments.substr(0, arguments.find(' '));
  std::vector<std::string> names;
  std::istringstream list(arguments.substr(arguments.find(" wrt ") + 5));
  for (std::string name; std::getline(list >> std::ws, name, ',');) names.push_back(name);
  std::vector<ValueId> wrt;
  for (const std::string& name : names) wrt.push_back(graph.find_input(name)->value);
  std::vector<ValueId> gradients = differentiate(graph, graph.find_output(loss)->value, wrt);
  for (size_t i = 0; i < names.size(); ++i)
    if (gradients[i] != kNoValue) graph.add_output(Role::kGradient, names[i], gradients[i]);
  return graph;
}

Graph run_partition(Graph graph) {
  Pins pins;
  std::shared_ptr<const DeviceMesh> mesh = std::exchange(graph.mesh, nullptr);
  for (const Input& input : graph.inputs) pins.inputs.push_back(graph.value(input.value).sharding);
  for (const Output& output : graph.outputs) {
    bool is_state = output.role == Role::kVariable || output.role == Role::kOptimizer || output.role == Role::kGradient;
    const Input* input = is_state ? graph.find_input(output.name) : nullptr;
    pins.outputs.push_back(graph.value(input != nullptr ? input->value : output.value).sharding);
  }
  for (Value& value : graph.values) value.sharding = Sharding(value.type.shape.rank());
  return partition(graph, mesh, pins, complete_layouts(graph, *mesh, pins));
}

Graph run_pass(const Graph& graph, const std::string& pass) {
  if (pass == "simplify") return simplify(graph);
  if (pass == "absorb") return absorb(graph);
  if (pass == "fuse") return fuse(graph);
  if (pass == "schedule") return schedule(graph);
  if (pass == "partition") return run_partition(graph);
  constexpr std::string_view kDifferentiate = "differentiate ";
  if (pass.starts_with(kDifferentiate)) return run_differentiate(graph, pass.substr(kDifferentiate.size()));
  throw std::runtime_error("the case names no pass: " + pass);
}

std::string run_case(const Case& one) {
  try {
    Graph graph = parse_graph(one.head);
    for (const std::string& pass : one.passes) graph = run_pass(graph, pass);
    return print(graph);
  } catch (const Error& error) {
    return std::string(error.what()) + '\n';
  }
}

// The lines of both, those that are only in one marked: the longest common subsequence.
std::string difference(const std::string& expected, const std::string& actual) {
  auto lines = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  std::vector<std::string> a = lines(expected), b = lines(actual);
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::string out;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();)
    if (i < a.size() && j < b.size() && a[i] == b[j])
      out += "  " + a[i++] + '\n', ++j;
    else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1]))
      out += "- " + a[i++] + '\n';
    else
      out += "+ " + b[j++] + '\n';
  return out;
}

std::vector<std::string> case_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(ESPALIER_TEST_DIR "/cases"))
    if (entry.path().extension() == ".ir") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Cases, ComeOutAsWritten) {
  std::vector<std::string> files = case_files();
  EXPECT_GE(files.size(), 20u);
  for (const std::string& path : files) {
    Case one = read_case(path);
    std::string actual = run_case(one);
    if (update_cases) {
      std::ofstream(path) << one.head << kSeparator << actual;
    } else {
      EXPECT_EQ(one.bad, actual.find(" = ") == std::string::npos) << path << ": only bad_*.ir end in an error\n" << actual;
      EXPECT_TRUE(one.expected == actual) << path << " (- expected, + came out)\n" << difference(one.expected, actual);
    }
  }
}

// --- what no case can show: on random graphs passes keep results, and a second run changes nothing --------------------------------------
Tensors random_inputs(const Graph& graph, std::mt19937& random) {
  Tensors inputs;
  for (const Input& input : graph.inputs)
    for (int64_t i = 0; i < graph.type(input.value).shape.volume(); ++i)
      inputs[input.name].push_back(std::uniform_real_distribution<float>(-1, 1)(random));
  return inputs;
}

enum class Compare { kBits, kClose };

void expect_same(const Tensors& expected, const Tensors& actual, Compare compare, const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto& [name, want] : expected) {
    const std::vector<float>& got = actual.at(name);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i]) && std::isnan(got[i])) continue;
      bool same = compare == Compare::kBits || !std::isfinite(want[i])
                      ? want[i] == got[i]
                      : std::abs(want[i] - got[i]) <= 1e-4f * std::max(1.0f, std::abs(want[i]));
      ASSERT_TRUE(same) << what << " changed '" << name << "' at " << i << ": " << want[i] << " became " << got[i];
    }
  }
}

TEST(Passes, KeepResultsOfRandomGraphs) {
  unsigned seed = std::random_device()();
  int64_t ops_before = 0, ops_after = 0;
  for (int round = 0; round < 300 && !HasFailure(); ++round, ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    Graph graph = RandomGraph(seed).make(static_cast<int>(random() % 60));
    Tensors inputs = random_inputs(graph, random);
    Tensors expected = run_graph(graph, inputs);
    Graph simple = simplify(graph), fused = fuse(simple), ordered = schedule(fused);
    expect_same(expected, run_graph(simple, inputs), Compare::kBits, "simplify");
    expect_same(expected, run_graph(fuse(graph), inputs), Compare::kClose, "fuse alone");
    expect_same(expected, run_graph(schedule(graph), inputs), Compare::kBits, "schedule alone");
    Tensors together = run_graph(ordered, inputs);
    expect_same(expected, together, Compare::kClose, "all");
    expect_same(run_graph(fused, inputs), together, Compare::kBits, "schedule after fuse");
    EXPECT_EQ(print(simplify(simple)), print(simple));
    EXPECT_EQ(print(parse_graph(print(ordered))), print(ordered));
    ops_before += static_cast<int64_t>(simple.ops.size());
    ops_after += static_cast<int64_t>(ordered.ops.size());
    if (HasFailure()) std::cerr << print(graph) << "----\n" << print(ordered);
  }
  EXPECT_LT(ops_after, ops_before * 3 / 4) << "fusion joins little";
}

// Every body is legal by itself: elementwise ops only, and fusing again finds nothing new to compute twice.
TEST(Passes, FusedGraphsHoldNoElementwiseChains) {
  unsigned seed = std::random_device()();
  for (int round = 0; round < 200 && !HasFailure(); ++round, ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Graph graph = simplify(RandomGraph(seed).make(50)), fused = fuse(graph);
    size_t before = 0, after = 0;
    for (const Op& op : graph.ops) before += !op.operands.empty();
    for (const Op& op : fused.ops) {
      if (!op.attrs.has("body")) {
        after += !op.operands.empty();
        continue;
      }
      const Graph& body = op.attrs.graph("body");
      EXPECT_EQ(body.outputs.size(), op.results.size());
      for (const Op& inner : body.ops) {
        EXPECT_TRUE(inner.def->elementwise());
        after += !inner.operands.empty();
      }
      after += !op.def->elementwise_body;  // the product itself
    }
    EXPECT_EQ(before, after) << "an op was lost or is computed twice";
  }
}

// New state is made after all readers of the old, wherever that is possible at all.
TEST(Passes, SchedulePutsUpdatesAfterReaders) {
  unsigned seed = std::random_device()();
  int updates = 0, late = 0;
  for (int round = 0; round < 200; ++round, ++seed) {
    Graph graph = schedule(simplify(RandomGraph(seed).make(50)));
    for (const Output& output : graph.outputs) {
      const Input* input = output.role == Role::kVariable ? graph.find_input(output.name) : nullptr;
      int32_t maker = graph.value(output.value).op;
      if (input == nullptr || maker < 0) continue;
      ++updates;
      for (int32_t o = maker + 1; o < static_cast<int32_t>(graph.ops.size()); ++o) {
        const auto& operands = graph.ops[static_cast<size_t>(o)].operands;
        if (std::find(operands.begin(), operands.end(), input->value) != operands.end()) {
          ++late;
          break;
        }
      }
    }
  }
  EXPECT_GT(updates, 300);
  EXPECT_LT(late, updates / 10);  // readers that need the new value cannot come before it
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) espalier::update_cases = espalier::update_cases || std::string(argv[i]) == "--update";
  return RUN_ALL_TESTS();
}

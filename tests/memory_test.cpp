// Uses: passes
// The memory plan: state fixed, every buffer where nothing live is overwritten, sizes exact. The oracle executes the plan symbolically:
// every range of the arena remembers whose bytes it holds, and every op has to find its operands.
#include "espalier/passes/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>

#include "espalier/ir/local.h"
#include "espalier/ir/text.h"
#include "espalier/passes/autodiff.h"
#include "espalier/passes/fuse.h"
#include "espalier/passes/place_buffers.h"
#include "espalier/passes/schedule.h"
#include "espalier/passes/simplify.h"
#include "random_graph.h"
#include "run_graph.h"

namespace espalier {
namespace {

std::vector<StateVariable> state_of(const Graph& graph) {
  std::vector<StateVariable> state;
  auto add = [&](Role role, const std::string& name, ValueId value) {
    if (role != Role::kVariable && role != Role::kOptimizer) return;
    for (const StateVariable& known : state)
      if (known.name == name) return;
    state.push_back({name, role, graph.type(value), graph.value(value).sharding});
  };
  for (const Input& input : graph.inputs) add(input.role, input.name, input.value);
  for (const Output& output : graph.outputs) add(output.role, output.name, output.value);
  return state;
}

StateRegion region_of(const Graph& graph, int64_t device = 0) {
  static const DeviceMesh one(1, "x");
  return plan_state(state_of(graph), graph.mesh != nullptr ? *graph.mesh : one, device);
}

MemoryPlan plan_of(const Graph& graph, int64_t device = 0) {
  return plan_memory(graph, device, std::vector<int64_t>(graph.ops.size(), 0), region_of(graph, device));
}

// Whose bytes each byte of the arena holds. A view holds its origin's.
class Ledger {
 public:
  Ledger(const Graph& graph, int64_t device, const MemoryPlan& plan, const std::vector<int64_t>& scratch)
      : graph_(graph), device_(device), plan_(plan), scratch_(scratch), holder_(static_cast<size_t>(plan.arena_bytes), kNobody) {}

  // Runs the program; every complaint is a failure of the test.
  void run(const StateRegion& state) {
    for (const Input& input : graph_.inputs) {
      if (input.role == Role::kVariable || input.role == Role::kOptimizer) {
        EXPECT_EQ(plan_.value_offset[static_cast<size_t>(input.value)], state.offset.at(input.name));
      }
      write(input.value, input.value);
    }
    for (const Input& input : graph_.inputs) expect_held(input.value, "an input is written over by another");
    for (size_t o = 0; o < graph_.ops.size() && !::testing::Test::HasFailure(); ++o) op(o);
    for (const StateCopy& copy : plan_.copies) {
      ASSERT_TRUE(copy.from + copy.bytes <= copy.to || copy.to + copy.bytes <= copy.from) << "a copy overlaps itself";
      std::copy_n(holder_.begin() + copy.from, copy.bytes, holder_.begin() + copy.to);
    }
    for (const Output& output : graph_.outputs)
      if (output.role == Role::kVariable || output.role == Role::kOptimizer)
        expect_held_at(state.offset.at(output.name), output.value, "new state is not in its place: " + output.name);
      else
        expect_held(output.value, "an output is written over: " + output.name);
  }

 private:
  static constexpr ValueId kNobody = -1, kScratch = -2;
  int64_t offset(ValueId id) const { return plan_.value_offset[static_cast<size_t>(id)]; }
  int64_t bytes(ValueId id) const { return local_bytes(graph_, id, device_); }

  void op(size_t o) {
    const Op& op = graph_.ops[o];
    if (op.def->view) {
      EXPECT_EQ(offset(op.results[0]), offset(op.operands[0]));  // nothing is read: its readers read the origin
      return;
    }
    for (ValueId id : op.operands) expect_held(id, "operand of op " + std::to_string(o) + " " + op.def->name);
    for (ValueId id : op.results) {
      EXPECT_EQ(offset(id) % kBufferAlignment, 0);
      for (ValueId operand : op.operands) {
        bool apart = offset(id) + bytes(id) <= offset(operand) || offset(operand) + bytes(operand) <= offset(id);
        bool same = offset(id) == offset(operand) && graph_.type(id).shape == graph_.type(operand).shape;
        bool in_place = op.def->elementwise() || op.def->elementwise_body;
        EXPECT_TRUE(apart || (same && in_place)) << op.def->name << " writes over its own operand at op " << o;
      }
    }
    int64_t at = plan_.scratch_offset[o];
    std::fill_n(holder_.begin() + at, scratch_[o], kScratch);
    for (ValueId id : op.operands) expect_held(id, "scratch on an operand of op " + std::to_string(o));
    for (ValueId id : op.results) write(id, id);
    for (int64_t b = at; b < at + scratch_[o]; ++b) ASSERT_EQ(holder_[static_cast<size_t>(b)], kScratch) << "a result on scratch, op " << o;
    for (ValueId id : op.results) expect_held(id, "two results on one place, op " + std::to_string(o));
  }

  void write(ValueId id, ValueId holder) {
    ASSERT_LE(offset(id) + bytes(id), plan_.arena_bytes);
    std::fill_n(holder_.begin() + offset(id), bytes(id), holder);
  }
  ValueId origin(ValueId id) const {
    int32_t op = graph_.value(id).op;
    return op >= 0 && graph_.ops[static_cast<size_t>(op)].def->view ? origin(graph_.ops[static_cast<size_t>(op)].operands[0]) : id;
  }
  void expect_held(ValueId id, const std::string& what) { expect_held_at(offset(id), id, what); }
  void expect_held_at(int64_t at, ValueId id, const std::string& what) {
    for (int64_t b = at; b < at + bytes(id); ++b)
      if (holder_[static_cast<size_t>(b)] != origin(id)) {
        ADD_FAILURE() << what << ": value %" << id << " is lost to " << holder_[static_cast<size_t>(b)];
        return;
      }
  }

  const Graph& graph_;
  const int64_t device_;
  const MemoryPlan& plan_;
  const std::vector<int64_t>& scratch_;
  std::vector<ValueId> holder_;
};

// Bytes that have to be there together: what one op reads, writes and works on, as ranges of the arena behind the state.
int64_t most_at_one_op(const Graph& graph, int64_t device, const MemoryPlan& plan, const std::vector<int64_t>& scratch,
                       int64_t state_bytes) {
  int64_t most = 0;
  for (size_t o = 0; o < graph.ops.size(); ++o) {
    std::vector<bool> touched(static_cast<size_t>(plan.arena_bytes), false);
    auto touch = [&](int64_t at, int64_t bytes) {
      for (int64_t b = at; b < at + bytes; ++b) touched[static_cast<size_t>(b)] = b >= state_bytes;
    };
    const Op& op = graph.ops[o];
    for (const auto& ids : {op.operands, op.results})
      for (ValueId id : ids) touch(plan.value_offset[static_cast<size_t>(id)], local_bytes(graph, id, device));
    touch(plan.scratch_offset[o], scratch[o]);
    most = std::max<int64_t>(most, std::count(touched.begin(), touched.end(), true));
  }
  return most + state_bytes;
}

void check_plan(const Graph& graph, int64_t device, std::mt19937& random) {
  std::vector<int64_t> scratch;
  for (const Op& op : graph.ops) scratch.push_back(op.def->view || random() % 4 != 0 ? 0 : static_cast<int64_t>(random() % 500));
  StateRegion state = region_of(graph, device);
  MemoryPlan plan = plan_memory(graph, device, scratch, state);
  Ledger(graph, device, plan, scratch).run(state);
  EXPECT_LE(plan.peak.total(), plan.arena_bytes);
  EXPECT_GE(plan.peak.total(), most_at_one_op(graph, device, plan, scratch, state.bytes));
  EXPECT_EQ(plan.peak.variables + plan.peak.optimizer, state.bytes);
  EXPECT_EQ(plan.arena_bytes % kBufferAlignment, 0);
  if (::testing::Test::HasFailure()) std::cerr << print(graph);
}

TEST(Memory, RandomGraphsLoseNothing) {
  unsigned seed = std::random_device()();
  for (int round = 0; round < 400 && !HasFailure(); ++round, ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Graph graph = RandomGraph(seed).make(static_cast<int>(random() % 60));
    for (const Graph& form : {graph, schedule(simplify(graph)), schedule(fuse(graph))}) check_plan(form, 0, random);
  }
}

// The same on a mesh, with dims that no axis divides and parts that are empty; every device.
TEST(Memory, RandomShardedGraphsLoseNothing) {
  unsigned seed = std::random_device()();
  for (int round = 0; round < 60 && !HasFailure(); ++round, ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Graph graph = RandomGraph(seed, 1 + static_cast<int64_t>(random() % 7), Views::kNone).make(40);
    graph.mesh = std::make_shared<const DeviceMesh>(std::vector<int64_t>{2, 3}, std::vector<std::string>{"a", "b"});
    Sharding square(2);
    square.dims[0].push_back(static_cast<int>(random() % 2));
    for (Value& value : graph.values)
      if (value.type.shape.rank() == 2) value.sharding = square;
    for (int64_t device = 0; device < 6; ++device) check_plan(schedule(graph), device, random);
  }
}

// Kernels run in the planned arena, over poison, give the very bits they give in buffers of their own.
TEST(Memory, KernelsInTheArenaGiveTheSameBits) {
  unsigned seed = std::random_device()();
  for (int round = 0; round < 60 && !HasFailure(); ++round, ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Graph graph = schedule(fuse(RandomGraph(seed).make(40)));
    Tensors inputs;
    for (const Input& input : graph.inputs)
      for (int64_t i = 0; i < graph.type(input.value).shape.volume(); ++i)
        inputs[input.name].push_back(std::uniform_real_distribution<float>(-1, 1)(random));
    std::vector<Kernel> kernels;
    std::vector<int64_t> scratch;
    for (const Op& op : graph.ops) {
      kernels.push_back(ops::make_kernel(*op.def, local_op(graph, op, 0, 1)));
      scratch.push_back(kernels.back().scratch_bytes);
    }
    StateRegion state = region_of(graph);
    MemoryPlan plan = plan_memory(graph, 0, scratch, state);
    std::vector<float> storage(static_cast<size_t>(plan.arena_bytes) / 4 + 16, std::numeric_limits<float>::quiet_NaN());
    char* arena = reinterpret_cast<char*>(storage.data());
    arena += (64 - reinterpret_cast<uintptr_t>(arena) % 64) % 64;
    auto place = [&](ValueId id) { return arena + plan.value_offset[static_cast<size_t>(id)]; };
    for (const Input& input : graph.inputs) std::memcpy(place(input.value), inputs[input.name].data(), inputs[input.name].size() * 4);
    for (size_t o = 0; o < graph.ops.size(); ++o) {
      std::vector<const void*> operands;
      std::vector<void*> results;
      for (ValueId id : graph.ops[o].operands) operands.push_back(place(id));
      for (ValueId id : graph.ops[o].results) results.push_back(place(id));
      kernels[o].run({operands.data(), results.data(), arena + plan.scratch_offset[o]});
    }
    for (const StateCopy& copy : plan.copies) std::memcpy(arena + copy.to, arena + copy.from, static_cast<size_t>(copy.bytes));
    Tensors expected = run_graph(graph, inputs);
    for (const Output& output : graph.outputs) {
      const std::vector<float>& want = expected[std::string(to_string(output.role)) + " " + output.name];
      bool is_state = output.role == Role::kVariable || output.role == Role::kOptimizer;
      const char* got = is_state ? arena + state.offset.at(output.name) : place(output.value);
      EXPECT_EQ(std::memcmp(got, want.data(), want.size() * 4), 0) << to_string(output.role) << " " << output.name << "\n" << print(graph);
    }
  }
}

TEST(Memory, AnUpdateTakesOverItsVariable) {
  Graph graph = parse_graph(R"(
in %w variable "w" f32[16,16]
in %g data "g" f32[16,16]
in %lr scalar "lr" f32[]
%new = sgd_update(%w, %g, %lr) @update
out variable "w" %new
)");
  MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.value_offset[0], 0);
  EXPECT_EQ(plan.value_offset[3], 0);
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.arena_bytes, 1024 + 1024 + 64);  // w, g, lr
  EXPECT_EQ(plan.peak.variables, 1024);
  EXPECT_EQ(plan.peak.activations, 1024 + 64);
}

TEST(Memory, AProductMayReplaceWhatItDoesNotRead) {
  const char* text = R"(
in %w variable "w" f32[16,16]
in %x data "x" f32[16,16]
%new = matmul(%x, %x) {factors="mk,kn->mn"}
out variable "w" %new
)";
  MemoryPlan plan = plan_of(parse_graph(text));
  EXPECT_EQ(plan.value_offset[2], 0);
  EXPECT_TRUE(plan.copies.empty());
  // But not what it reads: that goes to a buffer of its own and is copied at the end.
  std::string reads = text;
  reads.replace(reads.find("%x, %x"), 6, "%x, %w");
  plan = plan_of(parse_graph(reads));
  EXPECT_NE(plan.value_offset[2], 0);
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0].from, plan.value_offset[2]);
  EXPECT_EQ(plan.copies[0].to, 0);
  EXPECT_EQ(plan.copies[0].bytes, 1024);
}

TEST(Memory, OldStateStillReadIsNotWrittenOver) {
  Graph graph = parse_graph(R"(
in %w variable "w" f32[16]
in %lr scalar "lr" f32[]
%new = sgd_update(%w, %w, %lr) @update
%late = exp(%w)
out result "late" %late
out variable "w" %new
)");
  EXPECT_EQ(plan_of(graph).copies.size(), 1u);
  EXPECT_EQ(plan_of(schedule(graph)).copies.size(), 0u);  // the reader moves before the update
}

TEST(Memory, OneValueForTwoVariablesIsCopied) {
  Graph graph = parse_graph(R"(
%zero = constant() {value=0.0}
%zeros = broadcast(%zero) {shape=[32], dims=[]}
out optimizer "m" %zeros
out optimizer "v" %zeros
)");
  MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.value_offset[1], 0);
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0].from, 0);
  EXPECT_EQ(plan.copies[0].to, 128);
}

// a takes b's old value while b changes: the copy out of b's place goes first, whatever the order of the outputs.
TEST(Memory, CopiesAreOrdered) {
  for (bool b_first : {false, true}) {
    std::string text = "in %a variable \"a\" f32[32]\nin %b variable \"b\" f32[32]\n%new = exp(%b)\n";
    std::string a = "out variable \"a\" %b\n", b = "out variable \"b\" %new\n";
    Graph graph = parse_graph(text + (b_first ? b + a : a + b));
    MemoryPlan plan = plan_of(graph);
    ASSERT_EQ(plan.copies.size(), 2u);
    EXPECT_EQ(plan.copies[0].from, 128);
    EXPECT_EQ(plan.copies[0].to, 0);
    EXPECT_EQ(plan.copies[1].to, 128);
    std::vector<int64_t> scratch(graph.ops.size(), 0);
    Ledger(graph, 0, plan, scratch).run(region_of(graph));
  }
}

TEST(Memory, RefusesWhatNoCopyCanSave) {
  auto message = [](const std::string& text) -> std::string {
    try {
      plan_of(parse_graph(text));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("in %a variable \"a\" f32[32]\nin %b variable \"b\" f32[32]\nout variable \"a\" %b\nout variable \"b\" %a"),
            "variables exchange their values: memory plan; compute one of the new values from the old");
  EXPECT_EQ(message("in %a variable \"a\" f32[32]\n%1 = exp(%a)\nout variable \"a\" %1\nout result \"old\" %a"),
            "output 'old' is the old value of variable 'a', which the program replaces: memory plan; ask for the new value, or for a "
            "computed copy");
}

TEST(Memory, ADataInputDiesAndIsWrittenOver) {
  Graph graph = parse_graph("in %x data \"x\" f32[64]\n%1 = exp(%x)\n%2 = tanh(%1)\n%3 = negate(%2)\nout result \"y\" %3");
  MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.arena_bytes, 256);
  EXPECT_EQ(plan.peak.total(), 256);
}

TEST(Memory, ChainsOfDifferentSizesReuseTheirSpace) {
  std::string text = "in %0 data \"x\" f32[64,64]\n";  // 16 KiB each
  for (int i = 0; i < 20; ++i)
    text += "%" + std::to_string(i + 1) + " = matmul(%" + std::to_string(i) + ", %" + std::to_string(i) + ") {factors=\"mk,kn->mn\"}\n";
  MemoryPlan plan = plan_of(parse_graph(text + "out %20"));
  EXPECT_EQ(plan.arena_bytes, 2 * 16384);
}

TEST(Memory, CountsByPurposeAtThePeak) {
  Graph graph = parse_graph(R"(graph g mesh {'data': 2}
in %w variable "w" f32[64,64] ('data', None)
in %m optimizer "m" f32[64,64] ('data', None)
in %x data "x" f32[4,64] ('data', None)
in %lr scalar "lr" f32[]
%whole = all_gather(%w) (None, None)
%y = matmul(%x, %whole) {factors="mk,kn->mn"} ('data', None)
%g = matmul(%x, %y) {factors="km,kn->mn"} (None, None)+sum('data') @backward
%part = reduce_scatter(%g) ('data', None) @backward
%w2, %m2 = momentum_update(%w, %m, %part, %lr) {momentum=0.9, nesterov=0} ('data', None), ('data', None) @update
out variable "w" %w2
out optimizer "m" %m2
)");
  MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.peak_op, 3);  // the reduce-scatter
  EXPECT_EQ(plan.peak.variables, 8192);
  EXPECT_EQ(plan.peak.optimizer, 8192);
  EXPECT_EQ(plan.peak.gradients, 16384);
  EXPECT_EQ(plan.peak.communication, 8192);
  EXPECT_EQ(plan.peak.activations, 64);  // the learning rate
  EXPECT_EQ(plan.arena_bytes, 8192 + 8192 + 16384 + 8192 + 64);
}

// A collective writes over its operand only where its op says that it may, and where the operand dies.
TEST(Memory, AnAllReduceTakesOverWhatItReduces) {
  std::string text = R"(graph g mesh {'data': 2}
in %x data "x" f32[64] (None,)+sum('data')
%0 = negate(%x) (None,)+sum('data')
%1 = all_reduce(%0)
out result "y" %1
)";
  MemoryPlan plan = plan_of(parse_graph(text));
  EXPECT_EQ(plan.value_offset[2], plan.value_offset[1]);
  plan = plan_of(parse_graph(text + "out result \"kept\" %0\n"));
  EXPECT_NE(plan.value_offset[2], plan.value_offset[1]);
}

// A replica's part of a variable is updated where it lies.
TEST(Memory, AShardIsUpdatedWhereItLiesInItsVariable) {
  auto step = [](const std::string& sizes, const std::string& cut, const std::string& more = "") {
    return parse_graph("graph step mesh {'data': 2}\nin %w variable \"w\" f32" + sizes + "\nin %g data \"g\" f32" + sizes + " " + cut + R"(
in %lr scalar "lr" f32[]
%s = shard(%w) )" + cut +
                       R"(
%u = sgd_update(%s, %g, %lr) )" +
                       cut + R"( @update
%new = all_gather(%u)
)" + more + "out variable \"w\" %new\n");
  };
  auto inside = [](const Graph& graph) {
    const MemoryPlan plan = plan_of(graph);
    return std::pair{plan.inside[3], plan.inside[4]};
  };
  using Pair = std::pair<ValueId, ValueId>;
  Graph graph = step("[16,16]", "('data', None)");
  EXPECT_EQ(inside(graph), (Pair{0, 0}));
  MemoryPlan plan = plan_of(graph);
  for (ValueId part : {3, 4})
    for (int64_t device : {0, 1}) EXPECT_EQ(offset_of(plan, graph, part, device), device * 8 * 16 * 4);
  EXPECT_EQ(offset_of(plan, graph, 5, 1), 0);
  EXPECT_EQ(plan.arena_bytes, 1024 + 512 + 64);  // w, a half of g, lr
  const Pair nowhere{kNoValue, kNoValue};
  EXPECT_EQ(inside(step("[16,16]", "(None, 'data')")), nowhere);  // columns do not lie together
  EXPECT_EQ(inside(step("[1,256]", "(None, 'data')")), (Pair{0, 0}));
  EXPECT_EQ(inside(step("[16,15]", "('data', None)")), nowhere);  // the second half would begin within a cache line
  EXPECT_EQ(inside(step("[16,16]", "('data', None)", "out result \"part\" %u\n")), nowhere);
  EXPECT_EQ(inside(step("[16,16]", "('data', None)", "%late = exp(%w)\nout result \"late\" %late\n")), nowhere);
}

// One training step of `layers` square layers of 64, batch 4, as a trainer writes it: all updates at the end.
Graph deep_step(int layers) {
  Graph graph;
  Builder b(graph);
  const TensorType square{DType::kF32, {64, 64}};
  std::vector<ValueId> weights, moments;
  ValueId h = graph.add_input(Role::kData, "x", {DType::kF32, {4, 64}}), rate = graph.add_input(Role::kScalar, "rate", {DType::kF32, {}});
  for (int l = 0; l < layers; ++l) weights.push_back(graph.add_input(Role::kVariable, "w" + std::to_string(l), square));
  for (int l = 0; l < layers; ++l) moments.push_back(graph.add_input(Role::kOptimizer, "m" + std::to_string(l), square));
  for (ValueId w : weights) h = b.op("relu", {b.op("matmul", {h, w}, {{"factors", std::string("mk,kn->mn")}})});
  ValueId loss = b.op("reduce_sum", {b.op("square", {h})}, {{"dims", std::vector<int64_t>{0, 1}}, {"keep", int64_t{0}}});
  graph.add_output(Role::kResult, "loss", loss);
  std::vector<ValueId> gradients = differentiate(graph, loss, weights);
  b.phase = Phase::kUpdate;
  for (int l = 0; l < layers; ++l) {
    auto at = static_cast<size_t>(l);
    std::vector<ValueId> fresh =
        b.ops("momentum_update", {weights[at], moments[at], gradients[at], rate}, {{"momentum", 0.9}, {"nesterov", int64_t{0}}});
    graph.add_output(Role::kVariable, "w" + std::to_string(l), fresh[0]);
    graph.add_output(Role::kOptimizer, "m" + std::to_string(l), fresh[1]);
  }
  return simplify(graph);
}

// As traced, all gradients wait for the end; scheduled, each is used up before the next is made, and nothing is copied.
TEST(Memory, GradientsDoNotPileUp) {
  const int64_t square = 64 * 64 * 4;
  for (bool fused : {false, true}) {
    Graph graph = fused ? fuse(deep_step(10)) : deep_step(10);
    MemoryPlan traced = plan_of(graph), scheduled = plan_of(schedule(graph));
    EXPECT_EQ(traced.peak.gradients, 10 * square);
    EXPECT_LE(scheduled.peak.gradients, square);
    EXPECT_LE(scheduled.peak.total(), traced.peak.total() - 8 * square);
    EXPECT_TRUE(scheduled.copies.empty());
    EXPECT_EQ(scheduled.arena_bytes, scheduled.peak.total()) << "no byte is lost between buffers";
  }
}

// The order never costs much, and on average saves: peaks of random graphs.
TEST(Memory, SchedulingLowersPeaks) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  double before = 0, after = 0;
  for (int round = 0; round < 200; ++round, ++seed) {
    Graph graph = fuse(simplify(RandomGraph(seed, 16).make(60)));
    before += static_cast<double>(plan_of(graph).peak.total());
    after += static_cast<double>(plan_of(schedule(graph)).peak.total());
  }
  RecordProperty("mean_peak_percent", std::to_string(100 * after / before));
  EXPECT_LT(after, before);
}

TEST(Memory, StateLiesInOrderAndAligned) {
  DeviceMesh mesh(3, "x");
  Sharding cut(1);
  cut.dims[0].push_back(0);
  std::vector<StateVariable> state = {{"a", Role::kVariable, {DType::kF32, {7}}, cut},
                                      {"b", Role::kOptimizer, {DType::kF32, {1}}, cut},
                                      {"c", Role::kVariable, {DType::kF32, {40}}, Sharding(1)}};
  StateRegion first = plan_state(state, mesh, 0), last = plan_state(state, mesh, 2);
  EXPECT_EQ(first.offset, (std::map<std::string, int64_t>{{"a", 0}, {"b", 64}, {"c", 128}}));
  EXPECT_EQ(first.bytes, 128 + 192);
  EXPECT_EQ(first.variables, 64 + 192);
  EXPECT_EQ(first.optimizer, 64);
  EXPECT_EQ(last.offset.at("c"), 64);  // b's part is empty there
  EXPECT_EQ(last.bytes, 64 + 192);
}

// --- placing -------------------------------------------------------------------------------------------------------------------------
TEST(PlaceBuffers, NoTwoLiveBuffersOverlap) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  double waste = 0;
  const int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Buffer> buffers;
    for (int b = static_cast<int>(random() % 80); b > 0; --b) {
      auto birth = static_cast<int32_t>(random() % 40);
      buffers.push_back(
          {.bytes = static_cast<int64_t>(random() % 20 * 64), .birth = birth, .death = birth + static_cast<int32_t>(random() % 20)});
    }
    int64_t end = place_buffers(buffers, 640), most = 0;
    for (int32_t t = 0; t < 64; ++t) {
      int64_t live = 0;
      for (const Buffer& b : buffers) live += b.birth <= t && t <= b.death ? b.bytes : 0;
      most = std::max(most, live);
    }
    EXPECT_EQ(most_live(buffers).bytes, most);
    EXPECT_GE(end, 640 + most);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Buffer& a = buffers[i];
      EXPECT_GE(a.offset, 640);
      EXPECT_EQ(a.offset % 64, 0);
      EXPECT_LE(a.offset + a.bytes, end);
      for (size_t j = 0; j < i; ++j) {
        const Buffer& b = buffers[j];
        bool apart = a.death < b.birth || b.death < a.birth || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
        EXPECT_TRUE(apart);
      }
    }
    if (most > 0) waste += static_cast<double>(end - 640) / static_cast<double>(most) - 1;
  }
  EXPECT_LT(waste / rounds, 0.05);
  RecordProperty("mean_waste_percent", std::to_string(100 * waste / rounds));
}

// Two buffers of a training step's shape: whole nests of lifetimes pack without any waste.
TEST(PlaceBuffers, NestedLifetimesPackExactly) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 50; ++i) buffers.push_back({.bytes = 64 * (1 + i * 7 % 13), .birth = i, .death = 200 - i});
  int64_t end = place_buffers(buffers, 0);
  EXPECT_EQ(end, most_live(buffers).bytes);
}

// --- classes -------------------------------------------------------------------------------------------------------------------------
TEST(DeviceClasses, EqualLocalShapesShareAClass) {
  unsigned seed = std::random_device()();
  for (int round = 0; round < 200; ++round, ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Graph graph;
    graph.mesh = std::make_shared<const DeviceMesh>(std::vector<int64_t>{2, 3, 2}, std::vector<std::string>{"a", "b", "c"});
    auto sharding = [&](int rank) {
      Sharding cut(rank);
      for (int axis = 0; axis < 3; ++axis)
        if (random() % 2 == 0) cut.dims[random() % static_cast<unsigned>(rank)].push_back(axis);
      return cut;
    };
    for (int v = 0; v < 3; ++v) {
      graph.add_input(Role::kData, "", {DType::kF32, {static_cast<int64_t>(random() % 14), static_cast<int64_t>(random() % 14)}});
      graph.values.back().sharding = sharding(2);
    }
    std::vector<StateVariable> state = {{"w", Role::kVariable, {DType::kF32, {static_cast<int64_t>(random() % 14)}}, sharding(1)}};
    std::vector<int> classes = device_classes(graph, state);
    ASSERT_EQ(classes.size(), 12u);
    int next = 0;
    for (int64_t d = 0; d < 12; ++d) {
      auto shapes = [&](int64_t device) {
        std::vector<Dims> all = {local_shape(state[0].sharding, state[0].type.shape, *graph.mesh, device)};
        for (const Value& value : graph.values) all.push_back(local_shape(value.sharding, value.type.shape, *graph.mesh, device));
        return all;
      };
      if (classes[static_cast<size_t>(d)] == next) ++next;
      EXPECT_LT(classes[static_cast<size_t>(d)], next) << "classes are numbered as they appear";
      for (int64_t e = 0; e < d; ++e)
        if (classes[static_cast<size_t>(d)] == classes[static_cast<size_t>(e)]) {
          EXPECT_EQ(shapes(d), shapes(e));
        }
    }
    // Not finer than parts differ: where all sizes are divided evenly there is one class.
    for (Value& value : graph.values) value.type.shape = {12, 24};
    state[0].type.shape = {36};
    EXPECT_EQ(device_classes(graph, state), std::vector<int>(12, 0));
  }
}

// What `plan` for a thousand devices rests on. Generous limits: the machine may be busy; see the figures in the test's output.
TEST(Memory, IsQuick) {
  auto milliseconds = [](auto action) {
    auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  Graph graph = RandomGraph(1, 64, Views::kNone).make(220);
  graph.mesh = std::make_shared<const DeviceMesh>(std::vector<int64_t>{32, 32}, std::vector<std::string>{"a", "b"});
  for (size_t v = 0; v < graph.values.size(); ++v)
    for (int d = 0; d < graph.values[v].type.shape.rank(); ++d)
      if (v % 3 != 0) graph.values[v].sharding.dims[static_cast<size_t>(d)].push_back(d);
  std::vector<StateVariable> state = state_of(graph);
  double classes = milliseconds([&] { device_classes(graph, state); });
  Graph scheduled;
  double schedule_ms = milliseconds([&] { scheduled = schedule(graph); });
  double plan = milliseconds([&] { plan_of(scheduled); });
  std::cout << graph.values.size() << " values: classes of 1,024 devices " << classes << " ms, schedule " << schedule_ms << " ms, plan "
            << plan << " ms\n";
  EXPECT_LT(classes, 200);
  EXPECT_LT(plan, 200);
}

}  // namespace
}  // namespace espalier

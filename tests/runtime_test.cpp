// Uses: runtime
// Programs on many devices against the same program on whole tensors. Values are small integers, so every order of addition gives the same
// bits. Memory is planned as tightly as lifetimes allow, so that a buffer is overwritten the moment its program is done with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <thread>

#include "espalier/ir/local.h"
#include "espalier/runtime/executor.h"
#include "espalier/runtime/program.h"

namespace espalier {
namespace {

using Mesh = std::shared_ptr<const DeviceMesh>;

Mesh make_mesh(std::vector<int64_t> shape) {
  std::vector<std::string> names;
  for (size_t a = 0; a < shape.size(); ++a) names.push_back(fmt::format("a{}", a));
  return std::make_shared<DeviceMesh>(std::move(shape), names);
}

// --- ops of the tests' own ---------------------------------------------------------------------------------------------------------

FactorRule same_shape(const OpSignature& signature) { return elementwise_rule(signature.shapes(), 1, signature.where); }

Kernel matmul_kernel(const LocalOp& op) {
  const int64_t m = op.operands[0].shape[0], k = op.operands[0].shape[1], n = op.operands[1].shape[1];
  auto run = [m, k, n](const KernelCall& call) {
    auto* sum = static_cast<float*>(call.scratch);  // scratch must be this device's own
    for (int64_t i = 0; i < m; ++i) {
      std::fill(sum, sum + n, 0.0f);
      for (int64_t j = 0; j < k; ++j)
        for (int64_t c = 0; c < n; ++c) sum[c] += call.operand<float>(0)[i * k + j] * call.operand<float>(1)[j * n + c];
      std::copy(sum, sum + n, call.result<float>(0) + i * n);
    }
  };
  return {.run = run, .scratch_bytes = n * 4};
}

template <class F>
Kernel pointwise(const LocalOp& op, F f) {
  return {.run = [n = op.results[0].shape.volume(), two = op.operands.size() > 1, f](const KernelCall& call) {
    for (int64_t i = 0; i < n; ++i) call.result<float>(0)[i] = f(call.operand<float>(0)[i], two ? call.operand<float>(1)[i] : 0.0f);
  }};
}
float wrap(float x) { return x - 17 * std::floor(x / 17); }

// Adds to each element its index in the logical tensor: right only when each device knows where its part lies.
Kernel position_kernel(const LocalOp& op) {
  LocalTensor x = op.operands[0];
  return {.run = [x](const KernelCall& call) {
    for (int64_t i = 0; i < x.shape[0]; ++i)
      for (int64_t j = 0; j < x.shape[1]; ++j)
        call.result<float>(0)[i * x.shape[1] + j] =
            call.operand<float>(0)[i * x.shape[1] + j] + static_cast<float>((x.offset[0] + i) * x.logical[1] + x.offset[1] + j);
  }};
}

const OpDef kMatmul{.name = "matmul", .doc = "", .factors = "mk,kn->mn", .operand_count = 2, .cpu = matmul_kernel};
const OpDef kAdd{.name = "add", .doc = "", .rule = same_shape, .operand_count = 2, .cpu = [](const LocalOp& op) {
                   return pointwise(op, [](float a, float b) { return a + b; });
                 }};
const OpDef kDouble{.name = "double", .doc = "", .rule = same_shape, .cpu = [](const LocalOp& op) {
                      return pointwise(op, [](float a, float) { return 2 * a; });
                    }};
const OpDef kWrap{.name = "wrap", .doc = "", .rule = same_shape, .cpu = [](const LocalOp& op) {
                    return pointwise(op, [](float a, float) { return wrap(a); });
                  }};
const OpDef kPosition{.name = "position", .doc = "", .rule = same_shape, .cpu = position_kernel};
const OpDef kAlias{.name = "alias", .doc = "", .rule = same_shape, .view = true};
const OpDef kMove{.name = "move", .doc = "", .rule = same_shape, .collective = true};

// --- whole tensors -------------------------------------------------------------------------------------------------------------------

struct Whole {
  Dims shape;
  std::vector<float> values;
};

Whole evaluate(const Op& op, const std::vector<Whole>& values) {
  const Whole& a = values[static_cast<size_t>(op.operands[0])];
  Whole result = a;
  const Whole& b = values[static_cast<size_t>(op.operands.back())];
  if (op.def == &kMatmul) {
    result = {{a.shape[0], b.shape[1]}, std::vector<float>(static_cast<size_t>(a.shape[0] * b.shape[1]))};
    for (int64_t i = 0; i < a.shape[0]; ++i)
      for (int64_t j = 0; j < b.shape[1]; ++j)
        for (int64_t k = 0; k < a.shape[1]; ++k)
          result.values[static_cast<size_t>(i * b.shape[1] + j)] +=
              a.values[static_cast<size_t>(i * a.shape[1] + k)] * b.values[static_cast<size_t>(k * b.shape[1] + j)];
  }
  for (size_t i = 0; i < result.values.size(); ++i) {
    if (op.def == &kAdd) result.values[i] = a.values[i] + b.values[i];
    if (op.def == &kDouble) result.values[i] = 2 * a.values[i];
    if (op.def == &kWrap) result.values[i] = wrap(a.values[i]);
    if (op.def == &kPosition) result.values[i] = a.values[i] + static_cast<float>(i);
  }
  return result;
}

// --- programs ------------------------------------------------------------------------------------------------------------------------

// Lowest offset at which `bytes` meet none of the live buffers.
int64_t place(int64_t bytes, const std::vector<Range>& live, int64_t floor) {
  int64_t offset = floor;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Range& range : live)
      if (range.size > 0 && offset < range.offset + range.size && range.offset < offset + bytes)
        offset = (range.offset + range.size + 63) / 64 * 64, moved = true;
  }
  return offset;
}

struct Lifetimes {
  std::vector<ValueId> root;  // whose buffer a value lies in: a view's operand, an update's state, an all-reduce's operand
  std::vector<int> last;      // op of the last use of a root
};

bool is_state(Role role) { return role == Role::kVariable || role == Role::kOptimizer; }

Lifetimes lifetimes(const Graph& graph) {
  Lifetimes lives;
  auto end = static_cast<int>(graph.ops.size());
  for (ValueId v = 0; v < static_cast<ValueId>(graph.values.size()); ++v) lives.root.push_back(v);
  std::vector<int> last(graph.values.size(), -1);
  for (int i = 0; i < end; ++i)
    for (ValueId v : graph.ops[static_cast<size_t>(i)].operands) last[static_cast<size_t>(v)] = i;
  for (const Output& output : graph.outputs) last[static_cast<size_t>(output.value)] = end;
  lives.last = last;
  for (int i = 0; i < end; ++i) {
    const Op& op = graph.ops[static_cast<size_t>(i)];
    const Value &from = graph.value(op.operands[0]), &to = graph.value(op.results[0]);
    bool in_place = op.def == &kMove && from.sharding.pending != 0 && to.sharding.pending == 0 && from.sharding.dims == to.sharding.dims &&
                    from.op >= 0 && last[static_cast<size_t>(op.operands[0])] == i &&
                    graph.ops[static_cast<size_t>(from.op)].def != &kAlias;
    if (!op.def->view && !in_place) continue;
    ValueId root = lives.root[static_cast<size_t>(op.operands[0])];
    lives.root[static_cast<size_t>(op.results[0])] = root;
    lives.last[static_cast<size_t>(root)] = std::max(lives.last[static_cast<size_t>(root)], last[static_cast<size_t>(op.results[0])]);
  }
  return lives;
}

MemoryPlan plan_tightly(const Graph& graph, int64_t device, const StateRegion& state) {
  MemoryPlan plan;
  plan.value_offset.assign(graph.values.size(), -1);
  plan.inside.assign(graph.values.size(), kNoValue);
  plan.scratch_offset.assign(graph.ops.size(), -1);
  Lifetimes lives = lifetimes(graph);
  std::vector<std::pair<ValueId, Range>> live;
  plan.arena_bytes = state.bytes;
  auto allocate = [&](int64_t bytes) {
    std::vector<Range> ranges;
    for (auto& entry : live) ranges.push_back(entry.second);
    int64_t offset = place(bytes, ranges, state.bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    return offset;
  };
  auto define = [&](ValueId v) {
    auto& offset = plan.value_offset[static_cast<size_t>(v)];
    ValueId root = lives.root[static_cast<size_t>(v)];
    if (root != v) {
      offset = plan.value_offset[static_cast<size_t>(root)];
      return;
    }
    int64_t bytes = local_bytes(graph, v, device);
    offset = allocate(bytes);
    live.emplace_back(v, Range{offset, bytes});
  };
  for (const Input& input : graph.inputs) {
    if (!is_state(input.role)) define(input.value);
    if (is_state(input.role)) plan.value_offset[static_cast<size_t>(input.value)] = state.offset.at(input.name);
  }
  for (int i = 0; i < static_cast<int>(graph.ops.size()); ++i) {
    const Op& op = graph.ops[static_cast<size_t>(i)];
    for (ValueId v : op.results) define(v);
    if (op.def->cpu != nullptr)
      plan.scratch_offset[static_cast<size_t>(i)] = allocate(op.def->cpu(local_op(graph, op, device, 1)).scratch_bytes);
    std::erase_if(live, [&](auto& entry) { return lives.last[static_cast<size_t>(entry.first)] <= i; });
  }
  // State that takes the value of other state first, since that may be overwritten in turn.
  for (bool from_state : {true, false})
    for (const Output& output : graph.outputs) {
      if (!is_state(output.role) || (graph.value(output.value).op < 0) != from_state) continue;
      StateCopy copy{plan.value_offset[static_cast<size_t>(output.value)], state.offset.at(output.name),
                     local_bytes(graph, output.value, device)};
      if (copy.bytes > 0 && copy.from != copy.to) plan.copies.push_back(copy);
    }
  return plan;
}

std::shared_ptr<Compiled> bind(Graph graph) {
  auto compiled = std::make_shared<Compiled>();
  for (int64_t d = 0; d < graph.mesh->size(); ++d) {
    StateRegion state;
    for (const Input& input : graph.inputs) {
      if (!is_state(input.role)) continue;
      state.offset[input.name] = state.bytes;
      state.bytes += (local_bytes(graph, input.value, d) + 63) / 64 * 64;
    }
    compiled->device_class.push_back(static_cast<int>(d));
    compiled->memory.push_back(plan_tightly(graph, d, state));
    compiled->state.push_back(state);
  }
  compiled->graph = std::move(graph);
  return compiled;
}

// Writes a random program of ops and moves between random shardings.
class Writer {
 public:
  Writer(Mesh mesh, uint64_t seed) : random_(seed) { graph_.name = "random", graph_.mesh = std::move(mesh); }

  Sharding any_sharding() {
    Sharding sharding(2);
    for (int a = 0; a < graph_.mesh->axis_count(); ++a) {
      if (graph_.mesh->shape()[static_cast<size_t>(a)] == 1) continue;
      uint64_t dim = random_() % 3;
      if (dim < 2) sharding.dims[dim].push_back(a);
    }
    return sharding;
  }
  ValueId input(Role role, const std::string& name, Dims shape) {
    ValueId id = graph_.add_input(role, name, {DType::kF32, shape});
    graph_.value(id).sharding = any_sharding();
    return id;
  }
  ValueId op(const OpDef& def, std::vector<ValueId> operands, Sharding sharding) {
    Op op{.def = &def, .operands = std::move(operands), .scope = "layer"};
    ValueId id = graph_.append(std::move(op)).results[0];
    graph_.value(id).sharding = sharding;
    return id;
  }
  ValueId move(ValueId value, const Sharding& to) { return sharding(value) == to ? value : op(kMove, {value}, to); }
  ValueId resolved(ValueId value) {
    Sharding to = sharding(value);
    to.pending = 0;
    return move(value, to);
  }
  // h = x w with k cut by the last axis, which leaves a pending sum.
  ValueId matmul(ValueId x, ValueId w) {
    int axis = graph_.mesh->axis_count() - 1;
    bool cut = graph_.mesh->shape()[static_cast<size_t>(axis)] > 1;
    Sharding a(2), b(2), result(2);
    for (int d = 0; d < axis; ++d)
      if (graph_.mesh->shape()[static_cast<size_t>(d)] > 1) a.dims[0].push_back(d), result.dims[0].push_back(d);
    if (cut) a.dims[1].push_back(axis), b.dims[0].push_back(axis), result.pending = AxisSet{1} << axis;
    return op(kMatmul, {move(resolved(x), a), move(resolved(w), b)}, result);
  }
  ValueId step(ValueId x, ValueId y) {
    switch (random_() % 6) {
      case 0: {
        x = resolved(x);
        return op(kAdd, {x, move(resolved(y), sharding(x))}, sharding(x));
      }
      case 1:
        return op(kDouble, {x}, sharding(x));
      case 2:
        return x = resolved(x), op(kPosition, {x}, sharding(x));
      case 3:
        return move(x, any_sharding());
      case 4:
        return op(kAlias, {x}, sharding(x));
      default:
        return x = resolved(x), op(kWrap, {x}, sharding(x));
    }
  }
  Sharding sharding(ValueId id) const { return graph_.value(id).sharding; }
  Graph& graph() { return graph_; }
  uint64_t random() { return random_(); }

 private:
  std::mt19937_64 random_;
  Graph graph_;
};

Graph random_program(Mesh mesh, uint64_t seed, int64_t rows = 0) {
  Writer w(std::move(mesh), seed);
  const int64_t n = rows > 0 ? rows : static_cast<int64_t>(1 + w.random() % 13), m = static_cast<int64_t>(w.random() % 12);
  std::vector<ValueId> pool = {w.input(Role::kData, "x", {n, m}), w.input(Role::kData, "y", {n, m})};
  ValueId square = w.input(Role::kVariable, "square", {m, m}), moment = w.input(Role::kOptimizer, "moment", {n, m});
  pool.push_back(w.move(moment, w.any_sharding()));
  for (int i = 0; i < 25; ++i) {
    ValueId x = pool[w.random() % pool.size()], y = pool[w.random() % pool.size()];
    if (i % 5 == 4)
      x = w.resolved(x), x = w.resolved(w.matmul(w.op(kWrap, {x}, w.sharding(x)), square)), pool.push_back(w.op(kWrap, {x}, w.sharding(x)));
    pool.push_back(w.step(x, y));
    if (i % 3 == 2) x = w.resolved(pool.back()), pool.back() = w.op(kWrap, {x}, w.sharding(x));  // sums stay exact
  }
  ValueId last = w.resolved(pool.back());
  w.graph().add_output(Role::kResult, "last", last);
  last = w.op(kWrap, {last}, w.sharding(last));
  w.graph().add_output(Role::kOptimizer, "moment", w.move(last, w.sharding(moment)));
  ValueId moved = w.op(kPosition, {square}, w.sharding(square));
  w.graph().add_output(Role::kVariable, "square", w.op(kWrap, {moved}, w.sharding(moved)));
  return w.graph();
}

// --- running -------------------------------------------------------------------------------------------------------------------------

float element(const std::string& name, int64_t index) {
  return static_cast<float>((index * 31 + static_cast<int64_t>(name.size()) * 7 + name[0]) % 13);
}

std::vector<float> slice(const Whole& whole, const Box& box) {
  std::vector<float> values;
  for (int64_t i = 0; i < box.shape[0]; ++i)
    for (int64_t j = 0; j < box.shape[1]; ++j)
      values.push_back(whole.values[static_cast<size_t>((box.offset[0] + i) * whole.shape[1] + box.offset[1] + j)]);
  return values;
}

class Session {
 public:
  Session(const std::shared_ptr<Compiled>& compiled, ExecutorOptions options)
      : graph_(compiled->graph), executor_(graph_.mesh, options), executable_(executor_.load(compiled)) {
    for (const Input& input : graph_.inputs) {
      Whole whole{graph_.type(input.value).shape, {}};
      for (int64_t i = 0; i < whole.shape.volume(); ++i) whole.values.push_back(element(input.name, i));
      inputs_.push_back(whole);
      if (is_state(input.role)) fill_state(inputs_.size() - 1);
    }
  }
  void fill_state(size_t i) {
    for (int64_t d = 0; d < graph_.mesh->size(); ++d) fill(i, d, executor_.state(*executable_, graph_.inputs[i].name, d));
  }
  void fill(size_t i, int64_t d, void* buffer) {
    std::vector<float> values = slice(inputs_[i], box(graph_.inputs[i].value, d));
    if (!values.empty()) std::memcpy(buffer, values.data(), values.size() * 4);
  }
  Box box(ValueId value, int64_t d) const { return shard_box(graph_.value(value).sharding, graph_.type(value).shape, *graph_.mesh, d); }

  // One run on the devices and on whole tensors; state goes on from run to run.
  void step() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      if (!is_state(graph_.inputs[i].role))
        for (int64_t d = 0; d < graph_.mesh->size(); ++d) fill(i, d, executor_.input(*executable_, static_cast<int>(i), d));
    executor_.run(*executable_);
    std::vector<Whole> values(graph_.values.size());
    for (size_t i = 0; i < graph_.inputs.size(); ++i) values[static_cast<size_t>(graph_.inputs[i].value)] = inputs_[i];
    for (const Op& op : graph_.ops) values[static_cast<size_t>(op.results[0])] = evaluate(op, values);
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const Output& output = graph_.outputs[o];
      const Whole& expected = values[static_cast<size_t>(output.value)];
      for (int64_t d = 0; d < graph_.mesh->size(); ++d) {
        std::vector<float> wanted = slice(expected, box(output.value, d));
        if (wanted.empty()) continue;
        auto* got = static_cast<const float*>(executor_.output(*executable_, static_cast<int>(o), d));
        ASSERT_EQ(std::vector<float>(got, got + wanted.size()), wanted) << "output '" << output.name << "' on device " << d;
      }
      if (is_state(output.role))
        for (size_t i = 0; i < graph_.inputs.size(); ++i)
          if (graph_.inputs[i].name == output.name) inputs_[i] = expected;
    }
  }
  Executor& executor() { return executor_; }
  const Executable& executable() const { return *executable_; }

 private:
  const Graph& graph_;
  Executor executor_;
  std::shared_ptr<const Executable> executable_;
  std::vector<Whole> inputs_;
};

int64_t predicted_bytes(const Graph& graph, int64_t device) {
  int64_t bytes = 0;
  for (const Op& op : graph.ops)
    if (op.def->collective) {
      const Value &from = graph.value(op.operands[0]), &to = graph.value(op.results[0]);
      bytes += received_bytes(plan_transfer(from.type, from.sharding, to.sharding, *graph.mesh), *graph.mesh, device);
    }
  return bytes;
}

void check(const std::vector<int64_t>& mesh_shape, int workers, uint64_t seed, int64_t rows = 0) {
  SCOPED_TRACE(fmt::format("mesh {}, {} workers, seed {}", fmt::join(mesh_shape, "x"), workers, seed));
  auto compiled = bind(random_program(make_mesh(mesh_shape), seed, rows));
  Session session(compiled, {.workers = workers, .deadline_seconds = 30});
  for (int run = 0; run < 3; ++run) {
    session.step();
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (int64_t d = 0; d < compiled->graph.mesh->size(); ++d) {
    EXPECT_EQ(session.executor().communicated_bytes(d), predicted_bytes(compiled->graph, d));
    EXPECT_EQ(session.executor().allocated_bytes(d), compiled->memory[static_cast<size_t>(d)].arena_bytes);
  }
}

// --- answers -------------------------------------------------------------------------------------------------------------------------

TEST(Runtime, RandomProgramsOnEveryMeshAndTeam) {
  uint64_t seed = 1;
  for (const std::vector<int64_t>& mesh : std::vector<std::vector<int64_t>>{
           {1}, {2}, {3}, {4}, {5}, {7}, {8}, {16}, {2, 2}, {2, 3}, {3, 2}, {2, 4}, {4, 2}, {2, 2, 2}, {1, 4}, {2, 1, 3}, {4, 4}})
    for (int workers = 1; workers <= 4; ++workers)
      for (int again = 0; again < 4; ++again) check(mesh, workers, seed++);
}

TEST(Runtime, ManyDevicesOnFewWorkers) {
  check({256}, 2, 77, 300);
  check({32, 8}, 2, 78);
  check({32, 8}, 1, 79, 64);
}

// Tightly planned memory makes devices wait for readers; a program for this has at least one such wait, and it is at the step that needs
// it.
TEST(Runtime, WaitsForReadersStandWhereMemoryIsReused) {
  Graph graph;
  graph.mesh = make_mesh({2});
  Sharding cut(2), pending(2), whole(2);
  cut.dims[0].push_back(0);
  pending.pending = 1;
  ValueId x = graph.add_input(Role::kData, "x", {DType::kF32, {4, 4}});
  graph.value(x).sharding = cut;
  auto append = [&](const OpDef& def, ValueId operand) { return graph.append({.def = &def, .operands = {operand}}).results[0]; };
  ValueId moved = append(kMove, x), doubled = append(kDouble, moved), wrapped = append(kWrap, doubled);
  graph.add_output(Role::kResult, "y", wrapped);
  auto compiled = bind(graph);
  EXPECT_EQ(compiled->memory[0].value_offset, (std::vector<int64_t>{0, 64, 0, 64}));
  // How many collectives each of the three steps waits for when the values lie at these offsets.
  auto drains = [&](std::vector<int64_t> offsets) {
    compiled->memory[0].value_offset = std::move(offsets);
    compiled->memory[0].arena_bytes = 192;
    std::vector<int32_t> counts;
    for (const Step& step : make_program(*compiled, 0, {0, 0, 0}).steps) counts.push_back(step.drains);
    return counts;
  };
  using Counts = std::vector<int32_t>;
  EXPECT_EQ(drains({0, 64, 0, 64}), (Counts{0, 1, 0}));    // doubled lies where peers read x
  EXPECT_EQ(drains({0, 64, 128, 0}), (Counts{0, 0, 1}));   // wrapped does
  EXPECT_EQ(drains({0, 64, 128, 64}), (Counts{0, 0, 0}));  // nobody reads what was gathered
  compiled->graph.value(x).sharding = pending;             // an all-reduce: peers read its result too
  EXPECT_EQ(drains({0, 64, 128, 64}), (Counts{0, 0, 1}));
  EXPECT_EQ(drains({0, 64, 64, 64}), (Counts{0, 1, 0}));
  EXPECT_EQ(drains({0, 0, 64, 0}), (Counts{0, 0, 1}));  // in place
  EXPECT_EQ(drains({0, 0, 64, 128}), (Counts{0, 0, 0}));
}

TEST(Runtime, UpdatesThatAreNotInPlaceAreCopied) {
  Graph graph;
  graph.mesh = make_mesh({2});
  graph.name = "rotate";
  ValueId a = graph.add_input(Role::kVariable, "a", {DType::kF32, {3, 2}}),
          b = graph.add_input(Role::kVariable, "b", {DType::kF32, {3, 2}});
  ValueId sum = graph.append({.def = &kAdd, .operands = {a, b}}).results[0];
  graph.add_output(Role::kVariable, "b", sum);
  graph.add_output(Role::kVariable, "a", b);  // before b is overwritten
  auto compiled = bind(graph);
  EXPECT_EQ(compiled->memory[0].copies.size(), 2u);
  Session session(compiled, {.workers = 2});
  for (int run = 0; run < 4; ++run) session.step();
}

// --- memory and messages -----------------------------------------------------------------------------------------------------------

TEST(Runtime, TheNullExecutorCountsWithoutComputing) {
  Graph graph = random_program(make_mesh({2, 3}), 5);
  for (Op& op : graph.ops)
    if (op.def == &kWrap) op.scope = "never run";
  auto compiled = bind(graph);
  compiled->memory[3].arena_bytes = int64_t{1} << 50;  // nobody has so much
  Executor executor(graph.mesh, {.mode = ExecutionMode::kNull});
  auto executable = executor.load(compiled);
  executor.run(*executable);
  for (int64_t d = 0; d < 6; ++d) {
    EXPECT_EQ(executor.communicated_bytes(d), predicted_bytes(graph, d));
    EXPECT_EQ(executor.allocated_bytes(d), compiled->memory[static_cast<size_t>(d)].arena_bytes);
    EXPECT_EQ(executor.input(*executable, 0, d), nullptr);
  }
}

TEST(Runtime, TooMuchMemoryIsAnError) {
  auto compiled = bind(random_program(make_mesh({2}), 5));
  compiled->memory[1].arena_bytes = int64_t{1} << 50;
  Executor executor(compiled->graph.mesh);
  auto executable = executor.load(compiled);
  try {
    executor.run(*executable);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  }
}

TEST(Runtime, GrowingKeepsTheState) {
  Mesh mesh = make_mesh({3});
  auto small = bind(random_program(mesh, 11, 4));
  auto large = std::make_shared<Compiled>(*small);
  for (MemoryPlan& plan : large->memory) plan.arena_bytes += 3 << 20;
  Executor executor(mesh);
  auto first = executor.load(small);
  auto moment = [&](const Executable& executable, int64_t d) { return static_cast<float*>(executor.state(executable, "moment", d)); };
  for (int64_t d = 0; d < 3; ++d) moment(*first, d)[0] = 100 + static_cast<float>(d);
  auto second = executor.load(large);
  for (int64_t d = 0; d < 3; ++d) {
    EXPECT_EQ(moment(*second, d)[0], 100 + static_cast<float>(d));
    EXPECT_EQ(executor.allocated_bytes(d), large->memory[static_cast<size_t>(d)].arena_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(executor.state(*second, "square", d)) % 64, 0u);
  }
  executor.run(*first);  // both run in the same arenas
  executor.run(*second);
}

// Growing moves all arenas: it happens before the first device is fed, although only the last one needs more.
TEST(Runtime, GrowingLosesNoInput) {
  Mesh mesh = make_mesh({3});
  auto small = bind(random_program(mesh, 11, 4));
  auto large = std::make_shared<Compiled>(*small);
  ASSERT_EQ(large->memory.size(), 3u);
  large->memory[2].arena_bytes += 3 << 20;
  Executor executor(mesh);
  executor.run(*executor.load(small));
  auto second = executor.load(large);
  std::vector<void*> buffers;
  for (int64_t d = 0; d < 3; ++d) buffers.push_back(executor.input(*second, 0, d));
  for (int64_t d = 0; d < 3; ++d) EXPECT_EQ(executor.input(*second, 0, d), buffers[static_cast<size_t>(d)]);
}

TEST(Runtime, TracesWhatRan) {
  auto compiled = bind(random_program(make_mesh({2, 2}), 3));
  Trace trace;
  Session session(compiled, {.workers = 2, .trace = &trace});
  session.step();
  std::vector<TraceEvent> events = trace.events();
  int64_t bytes = 0, expected = 0;
  for (const TraceEvent& event : events) {
    EXPECT_LE(event.begin_ns, event.end_ns);
    EXPECT_LT(event.op, static_cast<int32_t>(compiled->graph.ops.size()));
    bytes += event.bytes;
  }
  for (int64_t d = 0; d < 4; ++d) expected += predicted_bytes(compiled->graph, d);
  EXPECT_GT(events.size(), 4 * 10u);
  EXPECT_EQ(bytes, expected);
}

TEST(Runtime, AnotherMeshIsRefused) {
  Executor executor(make_mesh({2}));
  EXPECT_THROW(executor.load(bind(random_program(make_mesh({3}), 1))), Error);
}

// --- failures ------------------------------------------------------------------------------------------------------------------------

std::atomic<int64_t> failing_device{-1};
std::atomic<bool> hold{false};

// Throws, or hangs while `hold` is set, on the device whose part begins at row `failing_device`.
template <class Failure>
Kernel failing_kernel(const LocalOp& op, Failure failure) {
  return {.run = [row = op.results[0].offset[0], n = op.results[0].shape.volume(), failure](const KernelCall& call) {
    if (row == failing_device) failure();
    std::memcpy(call.results[0], call.operands[0], static_cast<size_t>(n) * 4);
  }};
}
const OpDef kBroken{.name = "broken", .doc = "", .rule = same_shape, .cpu = [](const LocalOp& op) {
                      return failing_kernel(op, [] { throw std::runtime_error("the fan stopped"); });
                    }};
const OpDef kAllBroken{.name = "all_broken", .doc = "", .rule = same_shape, .cpu = [](const LocalOp&) {
                         return Kernel{.run = [](const KernelCall&) { throw std::runtime_error("the fan stopped"); }};
                       }};
const OpDef kRefusing{.name = "refusing", .doc = "", .rule = same_shape, .cpu = [](const LocalOp& op) {
                        return failing_kernel(op, [] { throw Error(ErrorKind::kMemory, "no scratch"); });
                      }};
const OpDef kHanging{.name = "hanging", .doc = "", .rule = same_shape, .cpu = [](const LocalOp& op) {
                       return failing_kernel(op, [] {
                         while (hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                       });
                     }};

// x (4, 2) over four devices -> op -> gathered by all.
Graph failing_program(const OpDef& def, bool gather = true) {
  Graph graph;
  graph.name = "failing";
  graph.mesh = make_mesh({4});
  Sharding cut(2);
  cut.dims[0].push_back(0);
  ValueId x = graph.add_input(Role::kData, "x", {DType::kF32, {4, 2}});
  graph.value(x).sharding = cut;
  ValueId y = graph.append({.def = &def, .operands = {x}, .scope = "sequential/dense"}).results[0];
  graph.value(y).sharding = cut;
  if (gather) y = graph.append({.def = &kMove, .operands = {y}, .scope = "sequential/dense", .reason = "the loss needs all"}).results[0];
  graph.add_output(Role::kResult, "y", y);
  return graph;
}

std::string run_message(Executor& executor, const Executable& executable, ErrorKind kind) {
  try {
    executor.run(executable);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "no error";
}

TEST(RuntimeFailures, AKernelThatThrowsCancelsAllAndIsNamed) {
  for (int workers = 1; workers <= 4; ++workers) {
    Executor executor(make_mesh({4}), {.workers = workers});
    auto broken = executor.load(bind(failing_program(kBroken))), refusing = executor.load(bind(failing_program(kRefusing)));
    failing_device = 2;
    EXPECT_EQ(run_message(executor, *broken, ErrorKind::kDevice), "the fan stopped: device 'cpu:2', op 'broken' of 'sequential/dense'");
    EXPECT_EQ(run_message(executor, *refusing, ErrorKind::kMemory), "no scratch: device 'cpu:2', op 'refusing' of 'sequential/dense'");
    failing_device = -1;
    EXPECT_EQ(run_message(executor, *broken, ErrorKind::kDevice), "no error");  // usable afterwards
  }
}

// One cause although all four throw, and nobody is left behind.
TEST(RuntimeFailures, TheFirstCauseIsToldAndAllThreadsEnd) {
  auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = threads();
  {
    Executor executor(make_mesh({4}), {.workers = 4});
    EXPECT_EQ(threads(), before + 3);
    auto broken = executor.load(bind(failing_program(kAllBroken)));
    for (int round = 0; round < 20; ++round) {
      const std::string text = run_message(executor, *broken, ErrorKind::kDevice);
      EXPECT_EQ(text.substr(0, 29), "the fan stopped: device 'cpu:") << text;
      EXPECT_EQ(text.find("fan", 10), std::string::npos) << text;
    }
  }
  EXPECT_EQ(threads(), before);
}

TEST(RuntimeFailures, HalfUpdatedStateIsSaid) {
  Graph graph = failing_program(kBroken);
  graph.add_input(Role::kVariable, "v", {DType::kF32, {1, 1}});
  graph.add_output(Role::kVariable, "v", graph.inputs.back().value);
  Executor executor(graph.mesh);
  auto executable = executor.load(bind(graph));
  failing_device = 0;
  EXPECT_EQ(
      run_message(executor, *executable, ErrorKind::kDevice),
      "the fan stopped: device 'cpu:0', op 'broken' of 'sequential/dense'; its state may be half updated: initialise or load it again "
      "before going on");
  failing_device = -1;
}

TEST(RuntimeFailures, ADeviceThatHangsPassesTheDeadline) {
  for (bool gather : {true, false}) {
    // Back between one deadline, which is told, and two, which end the executor; half a second of slack either way for a busy machine.
    Executor executor(make_mesh({4}), {.workers = 4, .deadline_seconds = 1});
    auto executable = executor.load(bind(failing_program(kHanging, gather)));
    failing_device = 3;
    hold = true;
    std::thread release([] { std::this_thread::sleep_for(std::chrono::milliseconds(1500)), hold = false; });
    std::string text = run_message(executor, *executable, ErrorKind::kDeadline);
    release.join();
    if (gather) {
      EXPECT_NE(text.find("waited 1 s for device 'cpu:3': move of 'sequential/dense' (the loss needs all)"), std::string::npos) << text;
    } else {
      EXPECT_EQ(text,
                "device 'cpu:3' did not come back within 1 s: op 'hanging' of 'sequential/dense'; look at that device first, or allow a "
                "longer deadline");
    }
    failing_device = -1;
    EXPECT_EQ(run_message(executor, *executable, ErrorKind::kDevice), "no error");  // it came back in the end
  }
}

TEST(RuntimeFailures, ADeviceThatNeverComesBackEndsTheExecutor) {
  {
    Executor executor(make_mesh({4}), {.workers = 4, .deadline_seconds = 0.05});
    auto executable = executor.load(bind(failing_program(kHanging)));
    failing_device = 3;
    hold = true;
    run_message(executor, *executable, ErrorKind::kDeadline);
    EXPECT_EQ(run_message(executor, *executable, ErrorKind::kDevice),
              "an earlier run left a device that did not come back: executor; make a new executor");
  }
  hold = false;  // what it works on outlives the executor
  failing_device = -1;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace espalier

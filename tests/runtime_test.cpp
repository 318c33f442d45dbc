// Uses: runtime
// Programs on many devices against the same program on whole tensors. Values are small integers, so every order of addition gives the same
// bits. What fails in mid-run: runtime_failures_test.
#include <cmath>
#include <cstring>
#include <random>

#include "runtime_programs.h"

namespace espalier {
namespace {

// --- ops of the tests' own ---------------------------------------------------------------------------------------------------------

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

}  // namespace
}  // namespace espalier

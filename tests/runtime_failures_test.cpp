// Uses: runtime
// A device that throws or hangs in the middle of a run: one first cause is told, all threads end, and what may go on does.
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "runtime_programs.h"

namespace espalier {
namespace {

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

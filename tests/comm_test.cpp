// Uses: comm passes
// Collectives against brute force on whole tensors: every change of sharding on small meshes, in random order of polling, with buffers
// scribbled over as soon as they count as drained; then threads, received bytes, and what happens when a device is late or wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "espalier/comm/local_communicator.h"
#include "espalier/comm/motion.h"
#include "espalier/passes/reshard.h"

namespace espalier {
namespace {

using Mesh = std::shared_ptr<const DeviceMesh>;

Mesh make_mesh(std::vector<int64_t> shape) {
  std::vector<std::string> names;
  for (size_t a = 0; a < shape.size(); ++a) names.push_back(fmt::format("a{}", a));
  return std::make_shared<DeviceMesh>(std::move(shape), names);
}

// --- the reference ---------------------------------------------------------------------------------------------------------------

uint64_t mix(uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

// The device that stands for all that hold the same pending part: coordinates on other axes set to 0.
int64_t holder(AxisSet pending, const DeviceMesh& mesh, int64_t device) {
  int64_t number = 0;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (pending >> a & 1) number += mesh.coordinate(device, a) * mesh.stride(a);
  return number;
}

// Bits of element `index` of the whole tensor in the pending part of `device`.
uint32_t source_bits(DType dtype, int64_t index, int64_t part_holder) {
  uint64_t random = mix(static_cast<uint64_t>(index) * 7919 + static_cast<uint64_t>(part_holder) * 104729 + 1);
  if (dtype == DType::kI32) return static_cast<uint32_t>(random % 2000) - 1000;
  return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(random % 20001) - 10000) * 1.234e-3f);
}

// Whole-tensor index of each element of a box, row-major.
std::vector<int64_t> indices(const Box& box, const Dims& shape) {
  std::vector<int64_t> all;
  Dims strides = row_major_strides(shape);
  for (int64_t i = 0; i < box.shape.volume(); ++i) {
    int64_t rest = i, index = 0;
    for (int d = box.shape.rank() - 1; d >= 0; --d) {
      index += (box.offset[d] + rest % box.shape[d]) * strides[d];
      rest /= box.shape[d];
    }
    all.push_back(index);
  }
  return all;
}

std::vector<uint32_t> source_buffer(const CollectiveCall& call, const DeviceMesh& mesh, int64_t device) {
  std::vector<uint32_t> buffer;
  for (int64_t index : indices(shard_box(call.from, call.type.shape, mesh, device), call.type.shape))
    buffer.push_back(source_bits(call.type.dtype, index, holder(call.from.pending, mesh, device)));
  return buffer;
}

// All devices that differ from `device` on the axes alone, in order of their positions there.
std::vector<int64_t> along(AxisSet axes, const DeviceMesh& mesh, int64_t device) {
  std::vector<int64_t> members;
  for (int64_t other = 0; other < mesh.size(); ++other) {
    bool same = true;
    for (int a = 0; a < mesh.axis_count(); ++a) same &= (axes >> a & 1) != 0 || mesh.coordinate(other, a) == mesh.coordinate(device, a);
    if (same) members.push_back(other);
  }
  return members;
}

void expect_result(const CollectiveCall& call, const DeviceMesh& mesh, int64_t device, const std::vector<uint32_t>& result) {
  std::vector<int64_t> wanted = indices(shard_box(call.to, call.type.shape, mesh, device), call.type.shape);
  ASSERT_EQ(result.size(), wanted.size());
  std::vector<int64_t> members = along(call.from.pending & ~call.to.pending, mesh, device);
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto bits = [&](int64_t member) { return source_bits(call.type.dtype, wanted[i], holder(call.from.pending, mesh, member)); };
    if (call.type.dtype == DType::kI32 || members.size() == 1) {
      uint32_t expected = bits(members[0]);
      for (size_t m = 1; m < members.size(); ++m)
        expected = call.from.reduction == Reduction::kSum
                       ? expected + bits(members[m])
                       : static_cast<uint32_t>(std::max(static_cast<int32_t>(expected), static_cast<int32_t>(bits(members[m]))));
      ASSERT_EQ(result[i], expected) << "device " << device << " element " << i;
      continue;
    }
    auto value = [&](int64_t member) { return std::bit_cast<float>(bits(member)); };
    float expected = value(members[0]);
    double exact = std::exp(static_cast<double>(expected));
    for (size_t m = 1; m < members.size(); ++m) {
      expected = call.from.reduction == Reduction::kSum ? expected + value(members[m]) : std::max(expected, value(members[m]));
      exact += std::exp(static_cast<double>(value(members[m])));
    }
    float got = std::bit_cast<float>(result[i]);
    if (call.from.reduction == Reduction::kLogSumExp)
      ASSERT_NEAR(got, std::log(exact), 2e-6 * (1 + std::fabs(std::log(exact)))) << "device " << device << " element " << i;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected)) << "device " << device << " element " << i;
  }
}

// Counted element by element: each element of the new part is received once a source that is not the device itself.
int64_t brute_received(const CollectiveCall& call, const DeviceMesh& mesh, int64_t device) {
  AxisSet resolved = call.from.pending & ~call.to.pending;
  auto n = static_cast<int64_t>(along(resolved, mesh, device).size());
  std::vector<int64_t> wanted = indices(shard_box(call.to, call.type.shape, mesh, device), call.type.shape);
  auto held = static_cast<int64_t>(wanted.size());
  if (resolved != 0 && call.from.dims == call.to.dims) {
    int64_t rank = 0;
    for (int64_t member : along(resolved, mesh, device)) rank += member < device;
    int64_t own = held / n + (rank < held % n ? 1 : 0);
    return 4 * ((n - 1) * own + held - own);
  }
  std::vector<int64_t> before = indices(shard_box(call.from, call.type.shape, mesh, device), call.type.shape);
  int64_t own = 0;
  for (int64_t index : wanted) own += std::binary_search(before.begin(), before.end(), index);
  return 4 * (n * held - own);
}

// --- drivers -----------------------------------------------------------------------------------------------------------------------

// One device's way through a list of collectives, with buffers of its own.
struct Runner {
  std::vector<std::vector<uint32_t>> operands, results, kept;
  int at = 0;
  bool started = false;
  int drained = 0;

  std::vector<bool> in_place;  // the result is written over the operand, which only an all-reduce can do

  Runner(const std::vector<CollectiveCall>& calls, const DeviceMesh& mesh, int64_t device, bool allow_in_place) {
    for (const CollectiveCall& call : calls) {
      operands.push_back(source_buffer(call, mesh, device));
      in_place.push_back(allow_in_place && call.from.dims == call.to.dims);
      auto size = static_cast<size_t>(local_shape(call.to, call.type.shape, mesh, device).volume());
      results.emplace_back(size, 0xdeadbeefu);
    }
  }
  std::vector<uint32_t>& result(size_t i) { return in_place[i] ? operands[i] : results[i]; }

  // One step; true when all is done and drained.
  bool step(LocalCommunicator& comm, int64_t device) {
    auto calls = static_cast<int>(operands.size());
    if (drained < at && comm.drained(device, drained) == Progress::kDone) {
      // Peers still reading would now read nonsense.
      std::fill(operands[static_cast<size_t>(drained)].begin(), operands[static_cast<size_t>(drained)].end(), 0x7fc00000u);
      std::fill(results[static_cast<size_t>(drained)].begin(), results[static_cast<size_t>(drained)].end(), 0x7fc00000u);
      ++drained;
    }
    if (at == calls) return drained == calls;
    auto i = static_cast<size_t>(at);
    if (!started) comm.start(device, at, operands[i].data(), result(i).data());
    started = true;
    if (comm.poll(device) == Progress::kBlocked) return false;
    kept.push_back(result(i));
    started = false;
    ++at;
    return false;
  }
};

void run_all(const Mesh& mesh, const std::vector<CollectiveCall>& calls, uint64_t seed, bool in_place) {
  LocalCommunicator comm(mesh, calls);
  std::vector<Runner> runners;
  for (int64_t d = 0; d < mesh->size(); ++d) runners.emplace_back(calls, *mesh, d, in_place);
  std::mt19937_64 random(seed);
  std::vector<int64_t> open;
  for (int64_t d = 0; d < mesh->size(); ++d) open.push_back(d);
  for (int64_t steps = 0; !open.empty(); ++steps) {
    ASSERT_LT(steps, 1'000'000) << "no progress";
    size_t pick = random() % open.size();
    if (runners[static_cast<size_t>(open[pick])].step(comm, open[pick])) open.erase(open.begin() + static_cast<int64_t>(pick));
  }
  for (int64_t d = 0; d < mesh->size(); ++d) {
    int64_t predicted = 0, brute = 0, by_pass = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      expect_result(calls[i], *mesh, d, runners[static_cast<size_t>(d)].kept[i]);
      if (::testing::Test::HasFatalFailure()) {
        ADD_FAILURE() << "seed " << seed << (in_place ? ", in place" : "") << ": " << to_string(calls[i].from, *mesh) << " -> "
                      << to_string(calls[i].to, *mesh) << " of " << to_string(calls[i].type) << " on " << to_string(*mesh);
        return;
      }
      predicted += received_bytes(comm.transfer(static_cast<int>(i)), *mesh, d);
      brute += brute_received(calls[i], *mesh, d);
      by_pass += received_bytes(Move{"", calls[i].from, calls[i].to}, calls[i].type, *mesh, d);
    }
    ASSERT_EQ(comm.received_bytes(d), brute) << "device " << d;
    ASSERT_EQ(comm.received_bytes(d), predicted) << "device " << d;
    ASSERT_EQ(comm.received_bytes(d), by_pass) << "device " << d;
  }
}

// All shardings of a rank over the axes of a mesh, in every order of axes within a dim.
std::vector<Sharding> all_shardings(int rank, const DeviceMesh& mesh) {
  std::vector<Sharding> all;
  std::vector<int> axes;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (mesh.shape()[static_cast<size_t>(a)] > 1) axes.push_back(a);
  std::sort(axes.begin(), axes.end());
  auto add = [&](const Sharding& sharding) {
    if (std::find(all.begin(), all.end(), sharding) == all.end()) all.push_back(sharding);
  };
  do {
    auto choices = static_cast<int64_t>(std::pow(rank + 2, axes.size()));
    for (int64_t choice = 0; choice < choices; ++choice) {
      Sharding sharding(rank);
      int64_t rest = choice;
      for (int axis : axes) {
        auto where = static_cast<int>(rest % (rank + 2));
        rest /= rank + 2;
        if (where < rank) sharding.dims[static_cast<size_t>(where)].push_back(axis);
        if (where == rank) sharding.pending |= AxisSet{1} << axis;
      }
      add(sharding);
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  return all;
}

std::vector<CollectiveCall> all_calls(const TensorType& type, const DeviceMesh& mesh, Reduction reduction) {
  std::vector<CollectiveCall> calls;
  for (Sharding from : all_shardings(type.shape.rank(), mesh))
    for (Sharding to : all_shardings(type.shape.rank(), mesh)) {
      if ((to.pending & ~from.pending) != 0) continue;
      if (reduction != Reduction::kSum && from.pending == to.pending) continue;  // the same as with kSum
      if (from.pending != 0) from.reduction = reduction;
      to.reduction = to.pending != 0 ? reduction : Reduction::kSum;
      calls.push_back({fmt::format("{} -> {}", to_string(from, mesh), to_string(to, mesh)), type, from, to});
    }
  return calls;
}

const std::vector<std::vector<int64_t>> kMeshes = {{1}, {2}, {3}, {4}, {7}, {8}, {2, 2}, {2, 3}, {2, 4}, {1, 4}, {2, 1, 2}};

int64_t check_every_change(Reduction reduction, DType dtype, const std::vector<Dims>& shapes,
                           const std::vector<std::vector<int64_t>>& meshes) {
  int64_t cases = 0;
  uint64_t seed = 20240611;
  for (const std::vector<int64_t>& shape : meshes) {
    Mesh mesh = make_mesh(shape);
    for (const Dims& dims : shapes) {
      std::vector<CollectiveCall> calls = all_calls({dtype, dims}, *mesh, reduction);
      cases += static_cast<int64_t>(calls.size()) * 2;
      if (calls.empty()) continue;
      run_all(mesh, calls, seed++, false);
      run_all(mesh, calls, seed++, true);
      if (::testing::Test::HasFailure()) return cases;
    }
  }
  return cases;
}

// --- every change of sharding --------------------------------------------------------------------------------------------------

TEST(Collectives, EveryChangeOfShardingOfVectors) {
  int64_t cases = check_every_change(Reduction::kSum, DType::kF32, {{0}, {1}, {5}, {10}, {16}, {101}, {4099}}, kMeshes);
  RecordProperty("cases", std::to_string(cases));
  EXPECT_GT(cases, 1000);
}

TEST(Collectives, EveryChangeOfShardingOfMatrices) {
  check_every_change(Reduction::kSum, DType::kF32, {{0, 3}, {1, 1}, {7, 5}, {10, 12}, {33, 2}}, kMeshes);
}

TEST(Collectives, EveryChangeOfShardingOnThreeAxes) { check_every_change(Reduction::kSum, DType::kF32, {{7, 10}}, {{2, 2, 2}}); }

TEST(Collectives, ScalarsAndHigherRanks) { check_every_change(Reduction::kSum, DType::kF32, {Dims{}, {3, 5, 4}}, {{1}, {3}, {4}, {2, 2}}); }

TEST(Collectives, Maximum) { check_every_change(Reduction::kMax, DType::kF32, {{0}, {1}, {11}, {7, 5}}, kMeshes); }
TEST(Collectives, LogSumExp) { check_every_change(Reduction::kLogSumExp, DType::kF32, {{0}, {1}, {11}, {7, 5}}, kMeshes); }
TEST(Collectives, IntegersAreCopiedAndAdded) { check_every_change(Reduction::kSum, DType::kI32, {{0}, {1}, {11}, {7, 5}}, kMeshes); }

TEST(Collectives, LargeBuffers) {
  Mesh mesh = make_mesh({2, 3});
  std::vector<CollectiveCall> calls = all_calls({DType::kF32, {211, 131}}, *mesh, Reduction::kSum);
  calls.resize(40);
  run_all(mesh, calls, 7, false);
}

// 10 over 4 parts is 3 3 2 2, over 2 parts 5 5: device 1 of 4 holds elements of both halves.
TEST(Collectives, CutsThatDoNotNest) {
  Mesh mesh = make_mesh({4, 2});
  Sharding four(1), two(1);
  four.dims[0].push_back(0);
  two.dims[0].push_back(1);
  Transfer transfer = plan_transfer({DType::kF32, {10}}, two, four, *mesh);
  PieceWalk walk(transfer, *mesh, 2);  // coordinates (1, 0): wants elements 3 to 5
  Piece piece;
  ASSERT_TRUE(walk.next(piece));
  EXPECT_EQ(piece.first_source, 2);  // its own half ends at 5
  EXPECT_EQ(piece.from, (Dims{3}));
  EXPECT_EQ(piece.shape, (Dims{2}));
  ASSERT_TRUE(walk.next(piece));
  EXPECT_EQ(piece.first_source, 3);  // the other half, in its own row
  EXPECT_EQ(piece.to, (Dims{2}));
  EXPECT_FALSE(walk.next(piece));
  run_all(mesh, {{"2 to 4", {DType::kF32, {10}}, two, four}, {"4 to 2", {DType::kF32, {10}}, four, two}}, 1, false);
}

TEST(Collectives, AllReduceReceivesTwiceTheBufferLessAnNth) {
  Mesh mesh = make_mesh({8});
  Sharding pending(1), whole(1);
  pending.pending = 1;
  Transfer transfer = plan_transfer({DType::kF32, {800}}, pending, whole, *mesh);
  EXPECT_EQ(received_bytes(transfer, *mesh, 3), 2 * 3200 * 7 / 8);
  Sharding scattered(1);
  scattered.dims[0].push_back(0);
  EXPECT_EQ(received_bytes(plan_transfer({DType::kF32, {800}}, pending, scattered, *mesh), *mesh, 3), 7 * 400);
}

TEST(Collectives, SlicesAreLocal) {
  Mesh mesh = make_mesh({2, 4});
  Sharding whole(2), cut(2);
  cut.dims[1].push_back(1);
  EXPECT_TRUE(plan_transfer({DType::kF32, {4, 9}}, whole, cut, *mesh).local);
  EXPECT_FALSE(plan_transfer({DType::kF32, {4, 9}}, cut, whole, *mesh).local);
  EXPECT_TRUE(plan_transfer({DType::kF32, {0, 9}}, cut, whole, *mesh).local);
}

TEST(Collectives, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float a[] = {-inf, inf, nan, 1, -inf, 200}, b[] = {-inf, -inf, 1, nan, 3, 200}, c[] = {-inf, 5, 2, 2, -inf, 200};
  const void* sources[] = {a, b, c};
  float out[6];
  reduce_run(Reduction::kMax, DType::kF32, sources, 3, 0, 6, out);
  EXPECT_EQ(out[0], -inf);
  EXPECT_EQ(out[1], inf);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_TRUE(std::isnan(out[3]));
  reduce_run(Reduction::kLogSumExp, DType::kF32, sources, 3, 0, 6, out);
  EXPECT_EQ(out[0], -inf);
  EXPECT_EQ(out[1], inf);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[4], 3);
  EXPECT_NEAR(out[5], 200 + std::log(3.0), 1e-4);
}

// --- threads ---------------------------------------------------------------------------------------------------------------------

TEST(Collectives, ThreadsThatRunAheadOfEachOther) {
  Mesh mesh = make_mesh({2, 4});
  std::vector<CollectiveCall> calls = all_calls({DType::kF32, {13, 9}}, *mesh, Reduction::kSum);
  for (int thread_count : {2, 3, 8}) {
    LocalCommunicator comm(mesh, calls);
    std::vector<Runner> runners;
    for (int64_t d = 0; d < mesh->size(); ++d) runners.emplace_back(calls, *mesh, d, true);
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t)
      threads.emplace_back([&, t] {
        std::vector<int64_t> open;
        for (int64_t d = t; d < mesh->size(); d += thread_count) open.push_back(d);
        while (!open.empty()) {
          std::erase_if(open, [&](int64_t d) { return runners[static_cast<size_t>(d)].step(comm, d); });
          std::this_thread::yield();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (int64_t d = 0; d < mesh->size(); ++d)
      for (size_t i = 0; i < calls.size(); ++i) expect_result(calls[i], *mesh, d, runners[static_cast<size_t>(d)].kept[i]);
  }
}

// --- what goes wrong ---------------------------------------------------------------------------------------------------------------

std::vector<CollectiveCall> sum_then_gather(const DeviceMesh&) {
  Sharding pending(1), whole(1), cut(1);
  pending.pending = 1;
  cut.dims[0].push_back(0);
  TensorType type{DType::kF32, {12}};
  return {{"all_reduce of 'sequential/dense' (its gradient is pending)", type, pending, whole}, {"all_gather of 'x'", type, cut, whole}};
}

std::string message(const std::function<void()>& act, ErrorKind kind) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Failures, ADeviceThatNeverArrivesIsNamed) {
  Mesh mesh = make_mesh({4});
  LocalCommunicator comm(mesh, sum_then_gather(*mesh));
  float buffers[4][2][12] = {};
  for (int64_t d : {0, 1, 3}) comm.start(d, 0, buffers[d][0], buffers[d][1]);
  std::string text = message([&] { wait(comm, *mesh, 0, 0.05); }, ErrorKind::kDeadline);
  EXPECT_EQ(text,
            "device 'cpu:0' waited 0.05 s for device 'cpu:2': all_reduce of 'sequential/dense' (its gradient is pending); look at that "
            "device first, or allow a longer deadline");
}

// Device 3 never comes to the first collective, so 2 hangs there, so 0 hangs in the second one.
TEST(Failures, TheChainOfWaitsIsFollowed) {
  Mesh mesh = make_mesh({2, 2});
  Sharding rows(1), columns(1), whole(1);
  columns.pending = 1, rows.pending = 2;
  TensorType type{DType::kF32, {12}};
  LocalCommunicator comm(mesh, {{"all_reduce of 'rows'", type, rows, whole}, {"all_reduce of 'columns'", type, columns, whole}});
  float buffers[3][2][12] = {};
  for (int64_t d : {0, 1, 2}) comm.start(d, 0, buffers[d][0], buffers[d][1]);
  EXPECT_EQ(comm.poll(2), Progress::kBlocked);
  EXPECT_EQ(comm.poll(0), Progress::kBlocked);
  EXPECT_EQ(comm.poll(1), Progress::kDone);
  EXPECT_EQ(comm.poll(0), Progress::kDone);
  comm.start(0, 1, buffers[0][1], buffers[0][0]);
  EXPECT_EQ(comm.waits_for(2), 3);
  EXPECT_EQ(
      message([&] { wait(comm, *mesh, 0, 0.02); }, ErrorKind::kDeadline),
      "device 'cpu:0' waited 0.02 s for device 'cpu:2', which waits in turn for device 'cpu:3': all_reduce of 'columns'; look at that "
      "device first, or allow a longer deadline");
}

TEST(Failures, DevicesInDifferentCollectives) {
  Mesh mesh = make_mesh({2});
  LocalCommunicator comm(mesh, sum_then_gather(*mesh));
  float buffers[2][2][12] = {};
  comm.start(0, 0, buffers[0][0], buffers[0][1]);
  comm.start(1, 1, buffers[1][0], buffers[1][1]);
  std::string text = message([&] { comm.poll(0); }, ErrorKind::kMismatch);
  EXPECT_EQ(
      text,
      "devices disagree on the next collective: device 'cpu:0' is in all_reduce of 'sequential/dense' (its gradient is pending), device "
      "'cpu:1' in all_gather of 'x': collective 0 of the program; run the same program on every device");
  comm.reset();  // afterwards it works again
  for (int64_t d : {0, 1}) comm.start(d, 0, buffers[d][0], buffers[d][1]);
  EXPECT_EQ(comm.poll(0), Progress::kBlocked);  // has summed its half, waits for the other
  EXPECT_EQ(comm.poll(1), Progress::kDone);
  EXPECT_EQ(comm.drained(1, 0), Progress::kBlocked);
  EXPECT_EQ(comm.poll(0), Progress::kDone);
  EXPECT_EQ(comm.drained(1, 0), Progress::kDone);
}

TEST(Failures, WrongPlansAreRefused) {
  Mesh mesh = make_mesh({2});
  Sharding whole(1), pending(1), lse(1), rank2(2);
  pending.pending = lse.pending = 1;
  lse.reduction = Reduction::kLogSumExp;
  auto plan = [&](const TensorType& type, const Sharding& from, const Sharding& to) { plan_transfer(type, from, to, *mesh); };
  EXPECT_EQ(message(
                [&] {
                  plan({DType::kF32, {4}}, whole, pending);
                },
                ErrorKind::kUsage),
            "a collective cannot leave an axis pending that was not: a collective on f32[4]; change the program");
  message([&] { plan({DType::kF32, {4}}, rank2, rank2); }, ErrorKind::kUsage);
  message([&] { plan({DType::kI32, {4}}, lse, whole); }, ErrorKind::kUsage);
}

}  // namespace
}  // namespace espalier

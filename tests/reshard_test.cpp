// Uses: passes
// Moves between shardings: their kinds and bytes on textbook cases, and every pair of shardings of a small tensor against the definition.
#include "espalier/passes/reshard.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

Sharding make(const DeviceMesh& mesh, const TensorLayout& layout, const Dims& shape, AxisSet pending = 0) {
  Sharding sharding = bind(layout, shape, mesh, "test");
  sharding.pending = pending;
  return sharding;
}

std::vector<std::string> kinds(const std::vector<Move>& moves) {
  std::vector<std::string> names;
  for (const Move& move : moves) names.push_back(move.op);
  return names;
}

using Names = std::vector<std::string>;

TEST(Reshard, TextbookMoves) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  TensorType type{DType::kF32, {64, 32}};
  const int64_t bytes = 64 * 32 * 4;
  Sharding whole = make(mesh, {}, type.shape), rows = make(mesh, {"model"}, type.shape),
           columns = make(mesh, {std::nullopt, "model"}, type.shape);
  Sharding sum_data = make(mesh, {}, type.shape, 1), sum_model = make(mesh, {}, type.shape, 2);

  EXPECT_EQ(kinds(plan_moves(rows, whole, type, mesh)), Names{"all_gather"});
  EXPECT_EQ(reshard_bytes(rows, whole, type, mesh), bytes * 3 / 4);
  EXPECT_EQ(kinds(plan_moves(whole, rows, type, mesh)), Names{"shard"});
  EXPECT_EQ(reshard_bytes(whole, rows, type, mesh), 0);
  EXPECT_EQ(kinds(plan_moves(rows, columns, type, mesh)), Names{"all_to_all"});
  EXPECT_EQ(reshard_bytes(rows, columns, type, mesh), bytes / 4 * 3 / 4);
  EXPECT_EQ(kinds(plan_moves(sum_model, whole, type, mesh)), Names{"all_reduce"});
  EXPECT_EQ(reshard_bytes(sum_model, whole, type, mesh), 2 * bytes * 3 / 4);
  EXPECT_EQ(kinds(plan_moves(sum_model, rows, type, mesh)), Names{"reduce_scatter"});
  EXPECT_EQ(reshard_bytes(sum_model, rows, type, mesh), bytes * 3 / 4);
  EXPECT_EQ(kinds(plan_moves(sum_data, whole, type, mesh)), Names{"all_reduce"});
  EXPECT_EQ(reshard_bytes(sum_data, whole, type, mesh), 2 * bytes / 2);
}

TEST(Reshard, TwoPendingAxesScatterOneBeforeTheOtherIsSummed) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  TensorType type{DType::kF32, {640, 320}};
  Sharding both = make(mesh, {}, type.shape, 3), rows = make(mesh, {"data"}, type.shape);
  // Half of the tensor stays after the scatter over data, so the sum over model costs half of what it would before.
  EXPECT_EQ(kinds(plan_moves(both, rows, type, mesh)), (Names{"reduce_scatter", "all_reduce"}));
  EXPECT_EQ(reshard_bytes(both, rows, type, mesh), 640 * 320 * 4 / 2 + 2 * (640 * 320 * 4 / 2) * 3 / 4);
}

TEST(Reshard, LatencyDecidesForSmallTensors) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  TensorType type{DType::kF32, {}};
  Sharding both = make(mesh, {}, type.shape, 3), whole = make(mesh, {}, type.shape);
  EXPECT_EQ(kinds(plan_moves(both, whole, type, mesh)), Names{"all_reduce"});  // two would receive 16 bytes, one receives 28
  EXPECT_EQ(reshard_bytes(both, whole, type, mesh), 28);
}

TEST(Reshard, UnevenPartsAreCountedExactly) {
  DeviceMesh mesh(4, "model");
  TensorType type{DType::kF32, {10}};
  Sharding cut = make(mesh, {"model"}, type.shape), whole = make(mesh, {}, type.shape), sum = make(mesh, {}, type.shape, 1);
  EXPECT_EQ(reshard_bytes(cut, whole, type, mesh), (10 - 2) * 4);  // the device with 2 of 10 elements receives the other 8
  EXPECT_EQ(received_bytes({"all_gather", cut, whole}, type, mesh, 0), (10 - 3) * 4);
  EXPECT_EQ(reshard_bytes(sum, cut, type, mesh), 3 * 3 * 4);          // 3 elements from each of 3 peers
  EXPECT_EQ(reshard_bytes(sum, whole, type, mesh), (3 * 3 + 7) * 4);  // sum 3 elements over 3 peers, fetch the other 7
}

// All shardings of a rank-2 tensor on a mesh of two axes: every axis cuts dim 0, dim 1 or nothing, both orders, pending or not.
std::vector<Sharding> all_shardings(const DeviceMesh& mesh, const Dims& shape) {
  std::vector<Sharding> all;
  const std::vector<TensorLayout> layouts = {{},
                                             {"a"},
                                             {"b"},
                                             {std::nullopt, "a"},
                                             {std::nullopt, "b"},
                                             {"a", "b"},
                                             {"b", "a"},
                                             {{"a", "b"}, std::nullopt},
                                             {{"b", "a"}, std::nullopt},
                                             {std::nullopt, {"a", "b"}},
                                             {std::nullopt, {"b", "a"}}};
  for (const TensorLayout& layout : layouts)
    for (AxisSet pending = 0; pending < 4; ++pending) {
      Sharding sharding = make(mesh, layout, shape, pending);
      if ((sharding.cut_axes() & pending) == 0) all.push_back(sharding);
    }
  return all;
}

TEST(Reshard, EveryPairEndsAtItsGoalAndCostsNoMoreThanReducingFirst) {
  int cases = 0;
  for (auto sizes : {std::vector<int64_t>{2, 2}, {2, 3}, {3, 2}}) {
    DeviceMesh mesh(sizes, {"a", "b"});
    for (Dims shape : {Dims{8, 6}, Dims{5, 7}, Dims{1, 3}, Dims{0, 4}})
      for (const Sharding& from : all_shardings(mesh, shape))
        for (const Sharding& to : all_shardings(mesh, shape)) {
          if ((to.pending & ~from.pending) != 0) continue;
          TensorType type{DType::kF32, shape};
          std::vector<Move> moves = plan_moves(from, to, type, mesh);
          Sharding at = from;
          int64_t cost = 0;
          for (const Move& move : moves) {
            ASSERT_EQ(move.from, at);
            ASSERT_EQ(move.to.pending & ~move.from.pending, 0u);
            ASSERT_EQ(move.to.cut_axes() & move.to.pending, 0u);
            at = move.to;
            cost += move_cost(move, type, mesh);
          }
          ASSERT_EQ(at, to);
          ASSERT_EQ(cost, reshard_cost(from, to, type, mesh));
          Sharding reduced = from;  // the naive way: all-reduce, then move
          reduced.pending = to.pending;
          int64_t naive = move_cost({"", reduced, to}, type, mesh) + (reduced == from ? 0 : move_cost({"", from, reduced}, type, mesh));
          ASSERT_LE(cost, naive) << to_string(from, mesh) << " -> " << to_string(to, mesh);
          ++cases;
        }
  }
  EXPECT_GT(cases, 2000);
}

}  // namespace
}  // namespace espalier

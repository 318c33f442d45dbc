#pragma once
// Moving a tensor from one sharding to another. What a move costs is computed from the boxes, exactly, uneven parts included.
#include <string>
#include <vector>

#include "espalier/ir/types.h"
#include "espalier/mesh/sharding.h"

namespace espalier {

// One collective (or, when nothing is received, a local slice), named by the OpDef that performs it.
struct Move {
  std::string op;  // "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "shard"
  Sharding from, to;
};

// The cheapest moves from `from` to `to`, in order; empty when they are equal. `to` has no pending axes that `from` has not.
std::vector<Move> plan_moves(const Sharding& from, const Sharding& to, const TensorType& type, const DeviceMesh& mesh);

// Bytes one device receives from its peers in a move, and the most that any device does. An all-reduce of S bytes over n devices is
// reduce-scatter then all-gather: 2 S (n-1)/n when n divides S.
int64_t received_bytes(const Move& move, const TensorType& type, const DeviceMesh& mesh, int64_t device);
int64_t move_bytes(const Move& move, const TensorType& type, const DeviceMesh& mesh);
// What a move costs when moves are compared, in bytes: those received, and kLatencyBytes unless every device keeps to itself.
inline constexpr int64_t kLatencyBytes = 16 << 10;  // what a device could have received while it waited for its peers to arrive
int64_t move_cost(const Move& move, const TensorType& type, const DeviceMesh& mesh);

// Along plan_moves, which minimises the cost.
int64_t reshard_bytes(const Sharding& from, const Sharding& to, const TensorType& type, const DeviceMesh& mesh);
int64_t reshard_cost(const Sharding& from, const Sharding& to, const TensorType& type, const DeviceMesh& mesh);

// The axes over which a move communicates: pending ones it resolves, and those that cut a dim on one side differently than on the other.
AxisSet move_axes(const Move& move);

}  // namespace espalier

#include "espalier/passes/reshard.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace espalier {
namespace {

int64_t group_size(AxisSet axes, const DeviceMesh& mesh) {
  int64_t size = 1;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (axes >> a & 1) size *= mesh.shape()[static_cast<size_t>(a)];
  return size;
}

int64_t group_index(AxisSet axes, const DeviceMesh& mesh, int64_t device) {
  int64_t index = 0;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (axes >> a & 1) index = index * mesh.shape()[static_cast<size_t>(a)] + mesh.coordinate(device, a);
  return index;
}

bool same_dims(const Sharding& a, const Sharding& b) { return a.rank == b.rank && a.dims == b.dims; }

// Whether every dim of `to` is cut by a prefix of the axes that cut it in `from`: nothing but gathering.
bool only_gathers(const Sharding& from, const Sharding& to) {
  for (int d = 0; d < from.rank; ++d) {
    const AxisList &f = from.dims[static_cast<size_t>(d)], &t = to.dims[static_cast<size_t>(d)];
    if (t.size() > f.size() || !std::equal(t.begin(), t.end(), f.begin())) return false;
  }
  return true;
}

// One move named by what it does: it resolves `from.pending & ~to.pending` and brings the dims into `to`'s form.
Move make_move(const Sharding& from, const Sharding& to, const TensorType& type, const DeviceMesh& mesh) {
  Move move{"", from, to};
  if ((from.pending & ~to.pending) != 0) {
    move.op = same_dims(from, to) ? "all_reduce" : "reduce_scatter";
  } else {
    move.op = "all_to_all";
    if (move_bytes(move, type, mesh) == 0)
      move.op = "shard";
    else if (only_gathers(from, to))
      move.op = "all_gather";
  }
  return move;
}

Sharding without_pending(Sharding sharding, AxisSet axes) {
  sharding.pending &= ~axes;
  if (sharding.pending == 0) sharding.reduction = Reduction::kSum;
  return sharding;
}

// What one move can turn a sharding with pending axes into, on the way to `to`: any one pending axis, or all that `to` does not keep,
// resolved everywhere (all-reduce) or onto a dim (reduce-scatter); or `to` itself when its dims take up the resolved axes.
std::vector<Sharding> resolutions(const Sharding& from, const Sharding& to) {
  std::vector<Sharding> next;
  AxisSet open = from.pending & ~to.pending;
  std::vector<AxisSet> groups = {open};
  for (AxisSet rest = open; rest != 0 && (open & (open - 1)) != 0; rest &= rest - 1) groups.push_back(rest & (~rest + 1));
  for (AxisSet group : groups) {
    Sharding reduced = without_pending(from, group);
    next.push_back(reduced);
    for (int d = 0; d < from.rank; ++d) {
      Sharding scattered = reduced;
      for (int a = 0; a < kMaxAxes; ++a)
        if (group >> a & 1) scattered.dims[static_cast<size_t>(d)].push_back(a);
      next.push_back(scattered);
    }
  }
  if ((open & ~to.cut_axes()) == 0) next.push_back(to);
  return next;
}

struct Path {
  int64_t cost = 0;
  std::vector<Move> moves;
};

}  // namespace

int64_t received_bytes(const Move& move, const TensorType& type, const DeviceMesh& mesh, int64_t device) {
  Box from = shard_box(move.from, type.shape, mesh, device), to = shard_box(move.to, type.shape, mesh, device);
  int64_t held = to.shape.volume(), own = intersect(from, to).shape.volume();
  AxisSet resolved = move.from.pending & ~move.to.pending;
  int64_t peers = group_size(resolved, mesh);
  if (resolved != 0 && same_dims(move.from, move.to)) {  // all-reduce: sum my part of the buffer, then fetch the others'
    int64_t mine = part(held, peers, group_index(resolved, mesh, device)).size;
    return ((peers - 1) * mine + (held - mine)) * size_of(type.dtype);
  }
  return (peers * held - own) * size_of(type.dtype);
}

int64_t move_bytes(const Move& move, const TensorType& type, const DeviceMesh& mesh) {
  int64_t most = 0;
  for (int64_t device = 0; device < mesh.size(); ++device) most = std::max(most, received_bytes(move, type, mesh, device));
  return most;
}

std::vector<Move> plan_moves(const Sharding& from, const Sharding& to, const TensorType& type, const DeviceMesh& mesh) {
  ESPALIER_ASSERT((to.pending & ~from.pending) == 0 && (to.pending == 0 || to.reduction == from.reduction));
  if (from == to) return {};
  // Dijkstra over the few shardings on the way; every path ends with one movement into `to`.
  std::unordered_map<Sharding, Path, ShardingHash> best = {{from, {}}};
  std::multimap<int64_t, Sharding> queue = {{0, from}};
  auto offer = [&](const Path& so_far, const Sharding& at, const Sharding& next) {
    Path path = so_far;
    path.moves.push_back(make_move(at, next, type, mesh));
    path.cost += move_cost(path.moves.back(), type, mesh);
    auto [known, fresh] = best.try_emplace(next, path);
    auto worse = [](const Path& a, const Path& b) { return std::pair(a.cost, a.moves.size()) > std::pair(b.cost, b.moves.size()); };
    if (!fresh && !worse(known->second, path)) return;
    known->second = path;
    queue.emplace(path.cost, next);
  };
  while (!queue.empty()) {
    auto [cost, at] = *queue.begin();
    queue.erase(queue.begin());
    const Path so_far = best.at(at);
    if (so_far.cost < cost) continue;
    if (at == to) break;
    if (at.pending == to.pending) {
      offer(so_far, at, to);
    } else {
      for (const Sharding& next : resolutions(at, to)) offer(so_far, at, next);
    }
  }
  return best.at(to).moves;
}

int64_t move_cost(const Move& move, const TensorType& type, const DeviceMesh& mesh) {
  int64_t bytes = move_bytes(move, type, mesh);
  return bytes == 0 ? 0 : bytes + kLatencyBytes;
}

int64_t reshard_cost(const Sharding& from, const Sharding& to, const TensorType& type, const DeviceMesh& mesh) {
  int64_t cost = 0;
  for (const Move& move : plan_moves(from, to, type, mesh)) cost += move_cost(move, type, mesh);
  return cost;
}

int64_t reshard_bytes(const Sharding& from, const Sharding& to, const TensorType& type, const DeviceMesh& mesh) {
  int64_t bytes = 0;
  for (const Move& move : plan_moves(from, to, type, mesh)) bytes += move_bytes(move, type, mesh);
  return bytes;
}

AxisSet move_axes(const Move& move) {
  AxisSet axes = move.from.pending & ~move.to.pending;
  for (size_t d = 0; d < move.from.rank; ++d) {
    const AxisList &f = move.from.dims[d], &t = move.to.dims[d];
    int common = 0;
    while (common < f.size() && common < t.size() && f[common] == t[common]) ++common;
    for (int i = common; i < f.size(); ++i) axes |= AxisSet{1} << f[i];
    for (int i = common; i < t.size(); ++i) axes |= AxisSet{1} << t[i];
  }
  return axes;
}

}  // namespace espalier

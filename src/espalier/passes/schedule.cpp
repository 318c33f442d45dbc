#include "espalier/passes/schedule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "espalier/ir/local.h"
#include "espalier/passes/rewrite.h"

namespace espalier {
namespace {

// What both directions need to know of memory. A view has its origin's bytes.
class Costs {
 public:
  explicit Costs(const Graph& graph) : graph_(graph), origin_(graph.values.size()), kept_(graph.values.size()) {
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id)
      origin_[static_cast<size_t>(id)] = espalier::origin(graph, id);
    for (const Input& input : graph.inputs)
      if (input.role == Role::kVariable || input.role == Role::kOptimizer) kept_[static_cast<size_t>(input.value)] = true;
    for (const Output& output : graph.outputs) kept_[static_cast<size_t>(origin(output.value))] = true;
    made_.assign(graph.values.size(), 0);
    for (const Op& op : graph.ops)
      for (ValueId id : op.results)
        if (!op.def->view) made_[static_cast<size_t>(id)] = bytes(id);
    for (const Output& output : graph.outputs)  // written over the old value
      if (output.role == Role::kVariable || output.role == Role::kOptimizer) made_[static_cast<size_t>(origin(output.value))] = 0;
  }

  ValueId origin(ValueId id) const { return origin_[static_cast<size_t>(id)]; }
  bool kept(ValueId origin) const { return kept_[static_cast<size_t>(origin)]; }  // state and outputs: no reader frees them
  int64_t bytes(ValueId id) const { return graph_.mesh != nullptr ? local_bytes(graph_, id, 0) : graph_.type(id).bytes(); }
  int64_t made(const Op& op) const {
    int64_t sum = 0;
    for (ValueId id : op.results) sum += made_[static_cast<size_t>(id)];
    return sum;
  }
  // The distinct origins an op reads and might free.
  std::vector<ValueId> read(const Op& op) const {
    std::vector<ValueId> origins;
    for (ValueId id : op.operands)
      if (ValueId from = origin(id); !kept(from) && std::find(origins.begin(), origins.end(), from) == origins.end())
        origins.push_back(from);
    return origins;
  }

 private:
  const Graph& graph_;
  std::vector<ValueId> origin_;
  std::vector<bool> kept_;
  std::vector<int64_t> made_;
};

// For each op, the ops that have to come after it: who reads its results, and who overwrites state it reads.
std::vector<std::vector<int32_t>> successors(const Graph& graph) {
  std::vector<std::vector<int32_t>> next(graph.ops.size());
  const auto reading = readers(graph);
  for (size_t o = 0; o < graph.ops.size(); ++o)
    for (ValueId id : graph.ops[o].results)
      next[o].insert(next[o].end(), reading[static_cast<size_t>(id)].begin(), reading[static_cast<size_t>(id)].end());
  const auto before = readers_of_replaced_state(graph);
  for (size_t o = 0; o < graph.ops.size(); ++o)
    for (int32_t reader : before[o]) next[static_cast<size_t>(reader)].push_back(static_cast<int32_t>(o));
  return next;
}

// Forwards: ops in the order they come, but one that frees at least what it makes goes as soon as it can; of several,
// those first that free more.
class Early {
 public:
  Early(const Graph& graph, const Costs& costs, const std::vector<std::vector<int32_t>>& next)
      : graph_(graph), costs_(costs), next_(next), waits_(graph.ops.size()), readers_left_(graph.values.size()), state_(graph.ops.size()) {
    for (const auto& list : next)
      for (int32_t o : list) ++waits_[static_cast<size_t>(o)];
    reading_.resize(graph.values.size());
    for (int32_t o = 0; o < static_cast<int32_t>(graph.ops.size()); ++o)
      if (!graph.ops[static_cast<size_t>(o)].def->view)
        for (ValueId id : costs.read(graph.ops[static_cast<size_t>(o)])) {
          ++readers_left_[static_cast<size_t>(id)];
          reading_[static_cast<size_t>(id)].push_back(o);
        }
  }

  std::vector<int32_t> run() {
    for (int32_t o = 0; o < static_cast<int32_t>(graph_.ops.size()); ++o) {
      if (state_[static_cast<size_t>(o)] == kDone) continue;
      if (waits_[static_cast<size_t>(o)] > 0)
        state_[static_cast<size_t>(o)] = kDue;
      else
        emit(o);
      while (emit_woken(urgent_, -1) || emit_woken(neutral_, 0)) {
      }
    }
    return std::move(order_);
  }

 private:
  enum State : uint8_t { kAhead, kDue, kDone };  // kDue: its turn came, but it had to wait for readers of the state it overwrites

  int64_t net_bytes(int32_t o) const {
    const Op& op = graph_.ops[static_cast<size_t>(o)];
    int64_t net = costs_.made(op);
    if (!op.def->view)
      for (ValueId id : costs_.read(op))
        if (readers_left_[static_cast<size_t>(id)] == 1) net -= costs_.bytes(id);
    return net;
  }

  using Heap = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>>;

  // The first op in the heap that is free and due, or makes at most `limit` bytes more than it frees.
  bool emit_woken(Heap& heap, int64_t limit) {
    while (!heap.empty()) {
      int32_t o = heap.top();
      heap.pop();
      if (state_[static_cast<size_t>(o)] == kDone || waits_[static_cast<size_t>(o)] > 0) continue;
      if (state_[static_cast<size_t>(o)] != kDue && net_bytes(o) > limit) continue;
      emit(o);
      return true;
    }
    return false;
  }

  // Something that `o` waited for, or that kept it from freeing, is done.
  void wake(int32_t o) {
    if (state_[static_cast<size_t>(o)] == kDone || waits_[static_cast<size_t>(o)] > 0) return;
    (state_[static_cast<size_t>(o)] == kDue || net_bytes(o) < 0 ? urgent_ : neutral_).push(o);
  }

  void emit(int32_t o) {
    order_.push_back(o);
    state_[static_cast<size_t>(o)] = kDone;
    const Op& op = graph_.ops[static_cast<size_t>(o)];
    const std::vector<ValueId> read = op.def->view ? std::vector<ValueId>() : costs_.read(op);
    for (ValueId id : read) --readers_left_[static_cast<size_t>(id)];
    for (int32_t later : next_[static_cast<size_t>(o)])
      if (--waits_[static_cast<size_t>(later)] == 0) wake(later);
    for (ValueId id : read)
      if (readers_left_[static_cast<size_t>(id)] == 1)  // whoever is left now frees it
        for (int32_t reader : reading_[static_cast<size_t>(id)]) wake(reader);
  }

  const Graph& graph_;
  const Costs& costs_;
  const std::vector<std::vector<int32_t>>& next_;
  std::vector<int> waits_, readers_left_;
  std::vector<std::vector<int32_t>> reading_;
  std::vector<State> state_;
  std::vector<int32_t> order_;
  Heap urgent_, neutral_;
};

// Backwards: an op goes to just before its first successor where what it makes, times the way, is more than what it keeps alive for longer.
// Entry i of the result is the place in `order` before which the i-th op of it now stands, its own place if it stays.
std::vector<int32_t> late_places(const Graph& graph, const Costs& costs, const std::vector<std::vector<int32_t>>& next,
                                 const std::vector<int32_t>& order) {
  const auto n = static_cast<int32_t>(order.size());
  std::vector<int32_t> place(order.size()), place_of_op(order.size());
  std::iota(place.begin(), place.end(), 0);
  for (int32_t i = 0; i < n; ++i) place_of_op[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
  // The last two places that read each origin, from the back: the last one, and the last one but for the op in question.
  std::vector<std::vector<int32_t>> reading(graph.values.size());
  for (int32_t o : order)
    for (ValueId id : costs.read(graph.ops[static_cast<size_t>(o)])) reading[static_cast<size_t>(id)].push_back(o);
  for (int32_t i = n; i-- > 0;) {
    int32_t o = order[static_cast<size_t>(i)];
    const Op& op = graph.ops[static_cast<size_t>(o)];
    int32_t target = n;
    for (int32_t later : next[static_cast<size_t>(o)]) target = std::min(target, place_of_op[static_cast<size_t>(later)]);
    if (target == n || target == i) continue;
    int64_t gain = costs.made(op) * (target - i);
    if (!op.def->view)
      for (ValueId id : costs.read(op)) {
        int32_t last = i;
        for (int32_t other : reading[static_cast<size_t>(id)])
          if (other != o) last = std::max(last, place_of_op[static_cast<size_t>(other)]);
        gain -= costs.bytes(id) * std::max(0, target - last);
      }
    if (gain > 0 || op.def->view) place_of_op[static_cast<size_t>(o)] = place[static_cast<size_t>(i)] = target;
  }
  return place;
}

}  // namespace

Graph schedule(const Graph& graph) {
  const Costs costs(graph);
  const auto next = successors(graph);
  const std::vector<int32_t> early = Early(graph, costs, next).run();
  const std::vector<int32_t> place = late_places(graph, costs, next, early);
  ESPALIER_ASSERT(early.size() == graph.ops.size());
  std::vector<int32_t> by_place(early.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::stable_sort(by_place.begin(), by_place.end(),
                   [&](int32_t a, int32_t b) { return place[static_cast<size_t>(a)] < place[static_cast<size_t>(b)]; });
  Rewrite rewrite(graph);
  for (int32_t i : by_place) rewrite.copy(graph.ops[static_cast<size_t>(early[static_cast<size_t>(i)])]);
  return rewrite.finish();
}

}  // namespace espalier

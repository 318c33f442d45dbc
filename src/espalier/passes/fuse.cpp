#include "espalier/passes/fuse.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <set>

#include "espalier/passes/rewrite.h"

namespace espalier {
namespace {

// Which ops go together: every op has a group, most are alone in theirs.
struct Groups {
  std::vector<int32_t> of;                    // one entry an op: its group
  std::vector<std::vector<int32_t>> members;  // one entry a group, ops in order
  std::vector<int32_t> head;                  // one entry a group: the op it is the epilogue of (a member of it), or -1
};

class Grouping {
 public:
  explicit Grouping(const Graph& graph)
      : graph_(graph), readers_(readers(graph)), parent_(graph.ops.size()), is_output_(graph.values.size()), is_kept_(graph.values.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Output& output : graph.outputs) is_output_[static_cast<size_t>(output.value)] = true;
    is_kept_ = is_output_;
    for (const Input& input : graph.inputs)
      if (input.role == Role::kVariable || input.role == Role::kOptimizer) is_kept_[static_cast<size_t>(input.value)] = true;
  }

  Groups run() {
    find_fusable();
    find_depths();
    sink();
    join_equal_depths();
    list_members();
    join_epilogues();
    return std::move(groups_);
  }

 private:
  const Op& op(int32_t o) const { return graph_.ops[static_cast<size_t>(o)]; }
  int32_t count() const { return static_cast<int32_t>(graph_.ops.size()); }
  int& depth(int32_t o) { return depth_[static_cast<size_t>(o)]; }
  const Value& space(int32_t o) const { return graph_.value(op(o).results[0]); }
  bool same_space(int32_t a, int32_t b) const {
    return space(a).type.shape == space(b).type.shape && space(a).sharding == space(b).sharding;
  }
  int32_t find(int32_t o) {
    while (parent_[static_cast<size_t>(o)] != o)
      o = parent_[static_cast<size_t>(o)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(o)])];
    return o;
  }

  void find_fusable() {
    for (const Op& op : graph_.ops) {
      auto f32 = [&](ValueId id) { return graph_.type(id).dtype == DType::kF32; };
      fusable_.push_back(op.def->elementwise() && !op.operands.empty() && std::all_of(op.operands.begin(), op.operands.end(), f32) &&
                         std::all_of(op.results.begin(), op.results.end(), f32));
    }
  }
  bool fusable_edge(int32_t producer, int32_t consumer) const {
    return fusable_[static_cast<size_t>(producer)] && fusable_[static_cast<size_t>(consumer)] && same_space(producer, consumer);
  }

  // Depth: the most edges that cannot be fused on a path from the inputs. A path that leaves a group has to cross such an edge before it
  // could come back, and is deeper from there on; so ops of one depth that are joined by fusable edges never wait for themselves,
  // however many join.
  void find_depths() {
    depth_.assign(graph_.ops.size(), 0);
    for (int32_t o = 0; o < count(); ++o)
      for (ValueId id : op(o).operands)
        if (int32_t from = graph_.value(id).op; from >= 0 && !op(from).operands.empty())
          depth(o) = std::max(depth(o), depth(from) + (fusable_edge(from, o) ? 0 : 1));
  }

  // An op that only deeper fusable ones read moves down to the first of them: a mask made early for the way back is computed where it is
  // used, and is no second result of the way forward. All its edges out are fusable, so depths still tell who may join. Not when it would
  // keep more operands alive until then than it saves results.
  void sink() {
    for (int32_t o = count(); o-- > 0;) {
      if (!fusable_[static_cast<size_t>(o)]) continue;
      int target = std::numeric_limits<int>::max(), results = 0;
      for (ValueId id : op(o).results) {
        const std::vector<int32_t>& reading = readers_[static_cast<size_t>(id)];
        for (int32_t reader : reading) target = std::min(target, fusable_edge(o, reader) ? depth(reader) : -1);
        results += !reading.empty();
      }
      if (results > 0 && target > depth(o) && kept_alive(o, target) <= results) depth(o) = target;
    }
  }

  // Full-sized operands that nobody else needs as late as `target`.
  int kept_alive(int32_t o, int target) {
    std::set<ValueId> operands;
    for (ValueId id : op(o).operands) {
      if (is_kept_[static_cast<size_t>(id)] || !(graph_.type(id).shape == space(o).type.shape)) continue;
      const std::vector<int32_t>& reading = readers_[static_cast<size_t>(id)];
      if (std::none_of(reading.begin(), reading.end(), [&](int32_t reader) { return reader != o && depth(reader) >= target; }))
        operands.insert(id);
    }
    return static_cast<int>(operands.size());
  }

  void join_equal_depths() {
    for (int32_t o = 0; o < count(); ++o)
      for (ValueId id : op(o).operands)
        if (int32_t from = graph_.value(id).op; from >= 0 && depth(from) == depth(o) && fusable_edge(from, o))
          parent_[static_cast<size_t>(find(from))] = find(o);
  }

  void list_members() {
    groups_.of.assign(graph_.ops.size(), -1);
    std::vector<int32_t> number(graph_.ops.size(), -1);
    for (int32_t o = 0; o < count(); ++o) {
      int32_t& group = number[static_cast<size_t>(find(o))];
      if (group < 0) {
        group = static_cast<int32_t>(groups_.members.size());
        groups_.members.emplace_back();
      }
      groups_.of[static_cast<size_t>(o)] = group;
      groups_.members[static_cast<size_t>(group)].push_back(o);
    }
    groups_.head.assign(groups_.members.size(), -1);
  }

  void join_epilogues() {
    for (size_t g = 0; g < groups_.members.size(); ++g) {
      const std::vector<int32_t>& members = groups_.members[g];
      if (members.empty() || !fusable_[static_cast<size_t>(members.front())] || replaces_state(members)) continue;
      int32_t head = -1;
      for (int32_t member : members)
        for (ValueId id : op(member).operands)
          if (int32_t from = graph_.value(id).op; from > head && takes_epilogue(from, static_cast<int32_t>(g))) head = from;
      if (head >= 0) join(head, static_cast<int32_t>(g));
    }
  }

  bool replaces_state(const std::vector<int32_t>& members) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const Output& output) {
      if (output.role != Role::kVariable && output.role != Role::kOptimizer) return false;
      return std::find(members.begin(), members.end(), graph_.value(output.value).op) != members.end();
    });
  }

  // The result is read by this group alone, has its shape and sharding, and is complete: with sums pending the body would see parts.
  bool takes_epilogue(int32_t producer, int32_t group) const {
    const Op& candidate = op(producer);
    if (candidate.def->with_epilogue.empty() || candidate.results.size() != 1) return false;
    ValueId result = candidate.results[0];
    const Value& value = graph_.value(result);
    const std::vector<int32_t>& reading = readers_[static_cast<size_t>(result)];
    return !is_output_[static_cast<size_t>(result)] && value.sharding.pending == 0 &&
           same_space(producer, groups_.members[static_cast<size_t>(group)].front()) &&
           std::all_of(reading.begin(), reading.end(), [&](int32_t reader) { return groups_.of[static_cast<size_t>(reader)] == group; });
  }

  void join(int32_t head, int32_t group) {
    int32_t old = groups_.of[static_cast<size_t>(head)];
    groups_.members[static_cast<size_t>(old)].clear();
    groups_.of[static_cast<size_t>(head)] = group;
    std::vector<int32_t>& members = groups_.members[static_cast<size_t>(group)];
    members.insert(std::upper_bound(members.begin(), members.end(), head), head);
    groups_.head[static_cast<size_t>(group)] = head;
  }

  const Graph& graph_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<int32_t> parent_;
  std::vector<bool> is_output_, is_kept_, fusable_;  // kept: state and outputs, which no reader frees
  std::vector<int> depth_;
  Groups groups_;
};

// Writes the groups as ops.
class Emitter {
 public:
  Emitter(const Graph& graph, const Groups& groups) : graph_(graph), groups_(groups), rewrite_(graph), outside_(graph.values.size()) {
    for (size_t g = 0; g < groups.members.size(); ++g) fuses_.push_back(worth_a_body(static_cast<int32_t>(g)));
    for (const Output& output : graph.outputs) outside_[static_cast<size_t>(output.value)] = true;
    for (size_t o = 0; o < graph.ops.size(); ++o) {
      auto group = static_cast<size_t>(groups.of[o]);
      bool in_body = fuses_[group] && groups.head[group] != static_cast<int32_t>(o);
      for (ValueId id : graph.ops[o].operands)
        if (!inside(id, groups.of[o]) && !(in_body && is_constant(id))) outside_[static_cast<size_t>(id)] = true;
    }
  }

  Graph run() {
    for (int32_t group : order())
      if (fuses_[static_cast<size_t>(group)])
        fused(group);
      else
        for (int32_t o : groups_.members[static_cast<size_t>(group)]) {
          const Op& op = graph_.ops[static_cast<size_t>(o)];
          if (!is_constant(op.results[0]) || outside_[static_cast<size_t>(op.results[0])]) rewrite_.copy(op);
        }
    return rewrite_.finish();
  }

 private:
  // A scalar made of nothing: every body takes its own copy.
  bool is_constant(ValueId id) const {
    int32_t from = graph_.value(id).op;
    if (from < 0) return false;
    const Op& op = graph_.ops[static_cast<size_t>(from)];
    return op.def->elementwise() && op.operands.empty() && op.results.size() == 1 && graph_.type(id).dtype == DType::kF32;
  }

  // What the members read from outside, in order of first use; the head's result counts as inside.
  std::vector<ValueId> operands(int32_t group) const {
    std::vector<ValueId> operands;
    for (int32_t o : groups_.members[static_cast<size_t>(group)])
      if (o != groups_.head[static_cast<size_t>(group)])
        for (ValueId id : graph_.ops[static_cast<size_t>(o)].operands)
          if (!inside(id, group) && !is_constant(id) && std::find(operands.begin(), operands.end(), id) == operands.end())
            operands.push_back(id);
    return operands;
  }
  bool inside(ValueId id, int32_t group) const {
    int32_t from = graph_.value(id).op;
    return from >= 0 && groups_.of[static_cast<size_t>(from)] == group;
  }

  // One op with a constant operand is worth a body; one op alone is not, and neither is a group of nothing but constants.
  bool worth_a_body(int32_t group) const {
    const std::vector<int32_t>& members = groups_.members[static_cast<size_t>(group)];
    if (groups_.head[static_cast<size_t>(group)] >= 0) return true;
    if (members.empty()) return false;
    const Op& first = graph_.ops[static_cast<size_t>(members.front())];
    if (members.size() == 1) {
      if (!first.def->elementwise() || first.operands.empty()) return false;
      bool f32 =
          std::all_of(first.operands.begin(), first.operands.end(), [&](ValueId id) { return graph_.type(id).dtype == DType::kF32; });
      if (!f32 || std::none_of(first.operands.begin(), first.operands.end(), [&](ValueId id) { return is_constant(id); })) return false;
    }
    return !operands(group).empty();
  }

  // Groups in an order in which each stands after those it reads from; among the free ones, the one whose last member came first.
  std::vector<int32_t> order() const {
    const size_t count = groups_.members.size();
    std::vector<std::set<int32_t>> after(count);
    std::vector<int> waits(count, 0);
    for (size_t o = 0; o < graph_.ops.size(); ++o)
      for (ValueId id : graph_.ops[o].operands)
        if (int32_t from = graph_.value(id).op; from >= 0 && !inside(id, groups_.of[o]))
          if (after[static_cast<size_t>(groups_.of[static_cast<size_t>(from)])].insert(groups_.of[o]).second)
            ++waits[static_cast<size_t>(groups_.of[o])];
    using Entry = std::pair<int32_t, int32_t>;  // last member, group
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    auto add = [&](int32_t group) {
      if (const auto& members = groups_.members[static_cast<size_t>(group)]; !members.empty()) ready.emplace(members.back(), group);
    };
    for (size_t g = 0; g < count; ++g)
      if (waits[g] == 0) add(static_cast<int32_t>(g));
    std::vector<int32_t> order;
    while (!ready.empty()) {
      int32_t group = ready.top().second;
      ready.pop();
      order.push_back(group);
      for (int32_t next : after[static_cast<size_t>(group)])
        if (--waits[static_cast<size_t>(next)] == 0) add(next);
    }
    return order;
  }

  void fused(int32_t group) {
    const std::vector<int32_t>& members = groups_.members[static_cast<size_t>(group)];
    const int32_t head = groups_.head[static_cast<size_t>(group)];
    const std::vector<ValueId> operands = this->operands(group);
    auto body = std::make_shared<Graph>();
    std::vector<std::pair<ValueId, ValueId>> inner;  // value of the graph, value of the body
    auto add_input = [&](ValueId id) { inner.emplace_back(id, body->add_input(Role::kData, "", graph_.type(id))); };
    if (head >= 0) add_input(graph_.ops[static_cast<size_t>(head)].results[0]);
    for (ValueId id : operands) add_input(id);
    std::vector<ValueId> results;
    for (int32_t o : members)
      if (o != head) add_member(*body, graph_.ops[static_cast<size_t>(o)], inner, results);

    if (results.empty()) return;  // nobody reads it
    const Op& last = graph_.ops[static_cast<size_t>(members.back())];
    Op op{.def = find_op("fused"), .phase = last.phase, .scope = last.scope};
    if (head >= 0) {
      const Op& first = graph_.ops[static_cast<size_t>(head)];
      op = first;
      op.def = find_op(first.def->with_epilogue);
      op.phase = last.phase;
    }
    ESPALIER_ASSERT(op.def != nullptr);
    op.operands.insert(op.operands.end(), operands.begin(), operands.end());
    for (ValueId& id : op.operands) id = rewrite_.of(id);
    op.attrs.set("body", std::shared_ptr<const Graph>(std::move(body)));
    rewrite_.add(std::move(op), results);
  }

  // Copies a member into the body, its constants before it, and collects which of its results are read outside.
  void add_member(Graph& body, const Op& member, std::vector<std::pair<ValueId, ValueId>>& inner, std::vector<ValueId>& results) {
    auto find = [&](ValueId id) {
      auto found = std::find_if(inner.begin(), inner.end(), [&](const auto& entry) { return entry.first == id; });
      return found == inner.end() ? kNoValue : found->second;
    };
    auto append = [&](const Op& source) {
      Op op{.def = source.def, .attrs = source.attrs};
      for (ValueId id : source.operands) op.operands.push_back(find(id));
      const std::vector<ValueId> made = body.append(std::move(op)).results;
      for (size_t r = 0; r < made.size(); ++r) inner.emplace_back(source.results[r], made[r]);
    };
    for (ValueId id : member.operands)
      if (find(id) == kNoValue) append(graph_.ops[static_cast<size_t>(graph_.value(id).op)]);
    append(member);
    for (ValueId id : member.results)
      if (outside_[static_cast<size_t>(id)]) {
        body.add_output(Role::kResult, "", find(id));
        results.push_back(id);
      }
  }

  const Graph& graph_;
  const Groups& groups_;
  Rewrite rewrite_;
  std::vector<bool> fuses_;    // one entry a group
  std::vector<bool> outside_;  // values that have to be made: outputs, and what other groups read
};

}  // namespace

Graph fuse(const Graph& graph) {
  const Groups groups = Grouping(graph).run();
  return Emitter(graph, groups).run();
}

}  // namespace espalier

#include "espalier/passes/simplify.h"

#include <bit>
#include <unordered_map>
#include <utility>

#include "espalier/passes/rewrite.h"

namespace espalier {
namespace {

// Which ops lead to an output.
std::vector<bool> used_ops(const Graph& graph) {
  std::vector<bool> used(graph.ops.size(), false);
  auto use = [&](ValueId id) {
    if (int32_t op = graph.value(id).op; op >= 0) used[static_cast<size_t>(op)] = true;
  };
  for (const Output& output : graph.outputs) use(output.value);
  for (size_t o = graph.ops.size(); o-- > 0;)
    if (used[o])
      for (ValueId id : graph.ops[o].operands) use(id);
  return used;
}

size_t hash_of(const Attr& attr) {
  if (const auto* integer = std::get_if<int64_t>(&attr)) return std::hash<int64_t>()(*integer);
  if (const auto* number = std::get_if<double>(&attr)) return std::hash<uint64_t>()(std::bit_cast<uint64_t>(*number));
  if (const auto* text = std::get_if<std::string>(&attr)) return std::hash<std::string>()(*text);
  if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&attr)) return std::hash<const Graph*>()(body->get());
  size_t hash = 0;
  for (int64_t entry : std::get<std::vector<int64_t>>(attr)) hash = hash * 1099511628211ull + static_cast<size_t>(entry);
  return hash;
}

// Floats count by their bits: 0.0 and -0.0 make different programs, and a NaN is the same NaN.
bool same(const Attrs& a, const Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    const double *u = std::get_if<double>(&x.second), *v = std::get_if<double>(&y.second);
    if (u != nullptr && v != nullptr) return x.first == y.first && std::bit_cast<uint64_t>(*u) == std::bit_cast<uint64_t>(*v);
    return x == y;
  });
}

// Finds an op of the new graph that computes what `op` would.
class SeenOps {
 public:
  explicit SeenOps(const Rewrite& rewrite, const Graph& source) : rewrite_(rewrite), source_(source) {}

  // `op` of the source; its equal in the new graph, or null after it was noted as the next to be copied there.
  const Op* find_or_note(const Op& op) {
    size_t hash = std::hash<const OpDef*>()(op.def);
    for (ValueId id : op.operands) hash = hash * 1099511628211ull + static_cast<size_t>(rewrite_.of(id));
    for (const auto& [name, value] : op.attrs) hash = hash * 1099511628211ull + hash_of(value);
    for (auto [at, end] = seen_.equal_range(hash); at != end; ++at) {
      const Op& other = rewrite_.graph().ops[at->second];
      if (equal(op, other)) return &other;
    }
    seen_.emplace(hash, rewrite_.graph().ops.size());
    return nullptr;
  }

 private:
  bool equal(const Op& op, const Op& other) const {
    if (op.def != other.def || op.operands.size() != other.operands.size() || !same(op.attrs, other.attrs)) return false;
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (rewrite_.of(op.operands[i]) != other.operands[i]) return false;
    for (size_t r = 0; r < op.results.size(); ++r)
      if (!(source_.value(op.results[r]).sharding == rewrite_.graph().value(other.results[r]).sharding)) return false;
    return true;
  }

  const Rewrite& rewrite_;
  const Graph& source_;
  std::unordered_multimap<size_t, size_t> seen_;  // hash -> op of the new graph
};

// A view under the same shape, or a move to the same sharding.
bool is_identity(const Graph& graph, const Op& op) {
  if (!op.def->view && !op.def->collective) return false;
  const Value &from = graph.value(op.operands[0]), &to = graph.value(op.results[0]);
  return from.type == to.type && from.sharding == to.sharding;
}

// Whether repeating `op`'s operand is what an elementwise op would do with it anyway: its dims are the last ones of the result.
bool repeats_last_dims(const Graph& graph, const Op& op) {
  if (!op.def->repeats) return false;
  FactorRule rule = rule_of(graph, op);
  const FactorTensor &operand = rule.operands[0], &result = rule.results[0];
  for (size_t i = 0; i < operand.size(); ++i)
    if (!operand[i].empty() && operand[i] != result[result.size() - operand.size() + i]) return false;
  return true;
}

// Lets an elementwise op read small operands themselves in place of repeated copies, as long as the rest of them gives its result its
// shape. Returns whether it changed anything.
bool skip_repeats(const Graph& graph, Op& op) {
  if (!op.def->elementwise()) return false;
  const Dims& shape = graph.type(op.results[0]).shape;
  bool changed = false;
  for (ValueId& id : op.operands) {
    int32_t from = graph.value(id).op;
    if (from < 0 || !repeats_last_dims(graph, graph.ops[static_cast<size_t>(from)])) continue;
    ValueId repeated = std::exchange(id, graph.ops[static_cast<size_t>(from)].operands[0]);
    if (rule_of(graph, op).result_shape(0) == shape)
      changed = true;
    else
      id = repeated;
  }
  return changed;
}

}  // namespace

Graph simplify(const Graph& original) {
  Graph graph = original;
  for (Op& op : graph.ops)
    while (skip_repeats(graph, op)) {
    }
  const std::vector<bool> used = used_ops(graph);
  Rewrite rewrite(graph);
  SeenOps seen(rewrite, graph);
  for (size_t o = 0; o < graph.ops.size(); ++o) {
    const Op& op = graph.ops[o];
    if (!used[o]) continue;
    if (is_identity(graph, op))
      rewrite.replace(op.results[0], rewrite.of(op.operands[0]));
    else if (const Op* equal = seen.find_or_note(op))
      for (size_t r = 0; r < op.results.size(); ++r) rewrite.replace(op.results[r], equal->results[r]);
    else
      rewrite.copy(op);
  }
  return rewrite.finish();
}

}  // namespace espalier

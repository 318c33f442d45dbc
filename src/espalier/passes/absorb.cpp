#include "espalier/passes/absorb.h"

#include "espalier/passes/rewrite.h"

namespace espalier {
namespace {

// The op that `op` takes in, or -1.
int32_t absorbed(const Graph& graph, const Op& op, const std::vector<std::vector<int32_t>>& reading) {
  if (op.def->absorbed_operand < 0) return -1;
  const ValueId id = op.operands[static_cast<size_t>(op.def->absorbed_operand)];
  const Value& value = graph.value(id);
  if (value.op < 0 || value.sharding.pending != 0 || reading[static_cast<size_t>(id)].size() != 1) return -1;
  for (const Output& output : graph.outputs)
    if (output.value == id) return -1;
  return graph.ops[static_cast<size_t>(value.op)].def->name == op.def->absorbed_op ? value.op : -1;
}

Op together(const Op& op, const Op& producer, const Rewrite& rewrite) {
  Op joined = op;
  joined.def = find_op(op.def->absorbing);
  ESPALIER_ASSERT(joined.def != nullptr);
  for (const auto& [name, value] : producer.attrs) joined.attrs.set(name, value);
  auto at = joined.operands.erase(joined.operands.begin() + op.def->absorbed_operand);
  joined.operands.insert(at, producer.operands.begin(), producer.operands.end());
  for (ValueId& id : joined.operands) id = rewrite.of(id);
  return joined;
}

}  // namespace

Graph absorb(const Graph& graph) {
  const auto reading = readers(graph);
  std::vector<int32_t> producer;
  std::vector<bool> gone(graph.ops.size(), false);
  for (const Op& op : graph.ops) {
    producer.push_back(absorbed(graph, op, reading));
    if (producer.back() >= 0) gone[static_cast<size_t>(producer.back())] = true;
  }
  Rewrite rewrite(graph);
  for (size_t o = 0; o < graph.ops.size(); ++o) {
    const Op& op = graph.ops[o];
    if (producer[o] >= 0)
      rewrite.add(together(op, graph.ops[static_cast<size_t>(producer[o])], rewrite), op.results);
    else if (!gone[o])
      rewrite.copy(op);
  }
  return rewrite.finish();
}

}  // namespace espalier

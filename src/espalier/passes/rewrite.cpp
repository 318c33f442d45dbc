#include "espalier/passes/rewrite.h"

#include <algorithm>

namespace espalier {

Rewrite::Rewrite(const Graph& source) : source_(source), map_(source.values.size(), kNoValue) {
  result_.name = source.name;
  result_.mesh = source.mesh;
  result_.values.reserve(source.values.size());
  result_.ops.reserve(source.ops.size());
  for (const Input& input : source.inputs) {
    replace(input.value, result_.add_input(input.role, input.name, source.type(input.value)));
    result_.values.back() = source.value(input.value);
  }
}

void Rewrite::copy(const Op& op) {
  Op copied = op;
  for (ValueId& id : copied.operands) id = of(id);
  add(std::move(copied), op.results);
}

void Rewrite::add(Op op, const std::vector<ValueId>& results) {
  op.results.clear();
  for (ValueId source : results) {
    auto id = static_cast<ValueId>(result_.values.size());
    result_.values.push_back(source_.value(source));
    result_.values.back().op = static_cast<int32_t>(result_.ops.size());
    result_.values.back().result = static_cast<int16_t>(op.results.size());
    op.results.push_back(id);
    replace(source, id);
  }
  result_.ops.push_back(std::move(op));
}

Graph Rewrite::finish() {
  for (const Output& output : source_.outputs) result_.add_output(output.role, output.name, of(output.value));
  return std::move(result_);
}

std::vector<std::vector<int32_t>> readers(const Graph& graph) {
  std::vector<std::vector<int32_t>> readers(graph.values.size());
  for (size_t o = 0; o < graph.ops.size(); ++o)
    for (ValueId id : graph.ops[o].operands)
      if (auto& list = readers[static_cast<size_t>(id)]; list.empty() || list.back() != static_cast<int32_t>(o))
        list.push_back(static_cast<int32_t>(o));
  return readers;
}

ValueId origin(const Graph& graph, ValueId id) {
  for (int32_t op = graph.value(id).op; op >= 0 && graph.ops[static_cast<size_t>(op)].def->view; op = graph.value(id).op)
    id = graph.ops[static_cast<size_t>(op)].operands[0];
  return id;
}

namespace {

// Whether `to` needs what `from` makes, by results or by the order already asked for.
bool leads_to(const Graph& graph, const std::vector<std::vector<int32_t>>& reading, const std::vector<std::vector<int32_t>>& order,
              int32_t from, int32_t to) {
  std::vector<bool> seen(graph.ops.size(), false);
  std::vector<int32_t> open = {from};
  auto visit = [&](int32_t op) {
    if (!seen[static_cast<size_t>(op)]) open.push_back(op);
    seen[static_cast<size_t>(op)] = true;
  };
  while (!open.empty()) {
    int32_t op = open.back();
    open.pop_back();
    if (op == to) return true;
    for (ValueId id : graph.ops[static_cast<size_t>(op)].results)
      for (int32_t reader : reading[static_cast<size_t>(id)]) visit(reader);
    for (size_t later = 0; later < order.size(); ++later)
      if (std::find(order[later].begin(), order[later].end(), op) != order[later].end()) visit(static_cast<int32_t>(later));
  }
  return false;
}

}  // namespace

std::vector<std::vector<int32_t>> readers_of_replaced_state(const Graph& graph) {
  const auto reading = readers(graph);
  std::vector<std::vector<int32_t>> readers_of_origin(graph.values.size());
  for (size_t o = 0; o < graph.ops.size(); ++o)
    for (ValueId id : graph.ops[o].operands) readers_of_origin[static_cast<size_t>(origin(graph, id))].push_back(static_cast<int32_t>(o));

  std::vector<std::vector<int32_t>> before(graph.ops.size());
  std::vector<std::pair<int32_t, int32_t>> against;  // reader, maker: pairs that stand the other way round
  for (const Output& output : graph.outputs) {
    const Input* input = output.role == Role::kVariable || output.role == Role::kOptimizer ? graph.find_input(output.name) : nullptr;
    int32_t maker = graph.value(origin(graph, output.value)).op;
    if (input == nullptr || maker < 0) continue;
    for (int32_t reader : readers_of_origin[static_cast<size_t>(input->value)])
      if (reader < maker)
        before[static_cast<size_t>(maker)].push_back(reader);
      else if (reader > maker)
        against.emplace_back(reader, maker);
  }
  for (auto [reader, maker] : against)
    if (!leads_to(graph, reading, before, maker, reader)) before[static_cast<size_t>(maker)].push_back(reader);
  return before;
}

}  // namespace espalier

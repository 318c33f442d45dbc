#include "espalier/passes/autodiff.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier {
namespace {

// Which values depend on one of `wrt`, and so need a gradient on the way back.
std::vector<bool> dependent_values(const Graph& graph, const std::vector<ValueId>& wrt) {
  std::vector<bool> dependent(graph.values.size(), false);
  for (ValueId id : wrt) dependent[static_cast<size_t>(id)] = true;
  for (const Op& op : graph.ops) {
    bool any = false;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const auto& exempt = op.def->no_grad_operands;
      bool differentiable = std::find(exempt.begin(), exempt.end(), static_cast<int>(i)) == exempt.end();
      any = any || (differentiable && dependent[static_cast<size_t>(op.operands[i])]);
    }
    for (ValueId id : op.results) dependent[static_cast<size_t>(id)] = any && graph.type(id).dtype == DType::kF32;
  }
  return dependent;
}

}  // namespace

std::vector<ValueId> differentiate(Graph& graph, ValueId loss, const std::vector<ValueId>& wrt) {
  ESPALIER_ASSERT(graph.type(loss).shape.empty() && graph.type(loss).dtype == DType::kF32);
  const std::vector<bool> dependent = dependent_values(graph, wrt);
  std::vector<ValueId> adjoint(graph.values.size(), kNoValue);
  Builder builder(graph);
  builder.phase = Phase::kBackward;
  if (dependent[static_cast<size_t>(loss)]) adjoint[static_cast<size_t>(loss)] = builder.op("constant", {}, {{"value", 1.0}});

  for (size_t at = graph.ops.size(); at-- > 0;) {
    const Op op = graph.ops[at];  // a copy: gradients are appended to the same list
    std::vector<ValueId> dresults;
    for (ValueId id : op.results)
      dresults.push_back(static_cast<size_t>(id) < adjoint.size() ? adjoint[static_cast<size_t>(id)] : kNoValue);
    bool reached = std::any_of(dresults.begin(), dresults.end(), [](ValueId id) { return id != kNoValue; });
    bool needed = std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId id) { return dependent[static_cast<size_t>(id)]; });
    if (!reached || !needed) continue;
    builder.scope = op.scope;
    if (op.def->grad == nullptr)
      usage_error(fmt::format("op '{}' has no gradient", op.def->name), op.scope, "keep it out of the path from a variable to the loss");
    std::vector<ValueId> doperands = op.def->grad(builder, op, dresults);
    ESPALIER_ASSERT(doperands.size() == op.operands.size());
    for (size_t i = 0; i < doperands.size(); ++i) {
      ValueId operand = op.operands[i];
      if (doperands[i] == kNoValue || !dependent[static_cast<size_t>(operand)]) continue;
      ESPALIER_ASSERT(graph.type(doperands[i]).shape == graph.type(operand).shape);
      ValueId& sum = adjoint[static_cast<size_t>(operand)];
      sum = sum == kNoValue ? doperands[i] : builder.op("add", {sum, doperands[i]});
    }
  }

  std::vector<ValueId> gradients;
  for (ValueId id : wrt) gradients.push_back(adjoint[static_cast<size_t>(id)]);
  return gradients;
}

}  // namespace espalier

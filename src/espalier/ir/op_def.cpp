#include "espalier/ir/op_def.h"

#include <unordered_map>

namespace espalier {

std::vector<Dims> OpSignature::shapes() const {
  std::vector<Dims> shapes;
  for (const TensorType& type : operands) shapes.push_back(type.shape);
  return shapes;
}

const OpDef* find_op(const std::string& name) {
  static const auto table = [] {
    std::unordered_map<std::string, const OpDef*> by_name;
    for (const OpDef* def : all_ops()) by_name.emplace(def->name, def);
    return by_name;
  }();
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

FactorRule rule_of(const OpDef& def, const OpSignature& signature) {
  if (def.rule != nullptr) return def.rule(signature);
  if (def.elementwise()) return elementwise_rule(signature.shapes(), def.result_count, signature.where);
  FactorRule rule = parse_rule(def.factors, signature.shapes(), signature.where);
  rule.reduction = def.reduction;
  return rule;
}

std::vector<TensorType> result_types(const OpDef& def, const OpSignature& signature) {
  FactorRule rule = rule_of(def, signature);
  std::vector<TensorType> types;
  for (int r = 0; r < static_cast<int>(rule.results.size()); ++r) types.push_back({def.result_dtype, rule.result_shape(r)});
  return types;
}

}  // namespace espalier

#include "espalier/ir/graph.h"

#include <fmt/format.h>

#include "espalier/base/nearest.h"

namespace espalier {

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kUpdate: return "update";
  }
  return "?";
}

const char* to_string(Role role) {
  switch (role) {
    case Role::kVariable: return "variable";
    case Role::kOptimizer: return "optimizer";
    case Role::kData: return "data";
    case Role::kScalar: return "scalar";
    case Role::kGradient: return "gradient";
    case Role::kResult: return "result";
  }
  return "?";
}

const Input* Graph::find_input(const std::string& name) const {
  for (const Input& input : inputs)
    if (input.name == name) return &input;
  return nullptr;
}

const Output* Graph::find_output(const std::string& name) const {
  for (const Output& output : outputs)
    if (output.name == name) return &output;
  return nullptr;
}

ValueId Graph::add_input(Role role, const std::string& name, const TensorType& type) {
  checked_volume(type.shape, fmt::format("{} '{}'", to_string(role), name));
  auto id = static_cast<ValueId>(values.size());
  values.push_back({.type = type, .sharding = Sharding(type.shape.rank()), .name = name});
  inputs.push_back({id, role, name});
  return id;
}

void Graph::add_output(Role role, const std::string& name, ValueId value) { outputs.push_back({value, role, name}); }

namespace {

void check_operands(const OpDef& def, const std::vector<TensorType>& types, const std::string& where) {
  if (def.operand_count >= 0 ? static_cast<int>(types.size()) != def.operand_count : types.empty())
    usage_error(fmt::format("op '{}' takes {} operands, not {}", def.name,
                            def.operand_count >= 0 ? std::to_string(def.operand_count) : "one or more", types.size()),
                where);
  for (size_t i = 0; i < types.size(); ++i) {
    DType wanted = def.any_dtype ? types[0].dtype : i < def.operand_dtypes.size() ? def.operand_dtypes[i] : DType::kF32;
    if (types[i].dtype != wanted)
      usage_error(fmt::format("op '{}' takes {} as operand {}, not {}", def.name, to_string(wanted), i, to_string(types[i].dtype)), where);
  }
}

}  // namespace

const Op& Graph::append(Op op) {
  std::string where = op.scope.empty() ? op.def->name : op.scope + " (" + op.def->name + ")";
  std::vector<TensorType> types = operand_types(*this, op);
  check_operands(*op.def, types, where);
  op.results.clear();
  int16_t index = 0;
  for (const TensorType& type : result_types(*op.def, {op.attrs, types, where})) {
    checked_volume(type.shape, where);
    op.results.push_back(static_cast<ValueId>(values.size()));
    values.push_back({.type = type, .sharding = Sharding(type.shape.rank()), .op = static_cast<int32_t>(ops.size()), .result = index++});
  }
  ops.push_back(std::move(op));
  return ops.back();
}

std::vector<TensorType> operand_types(const Graph& graph, const Op& op) {
  std::vector<TensorType> types;
  for (ValueId id : op.operands) types.push_back(graph.type(id));
  return types;
}

FactorRule rule_of(const Graph& graph, const Op& op) {
  std::vector<TensorType> types = operand_types(graph, op);
  return rule_of(*op.def, {op.attrs, types, op.scope});
}

std::vector<ValueId> Builder::ops(const std::string& name, std::vector<ValueId> operands, Attrs attrs) {
  const OpDef* def = find_op(name);
  if (def == nullptr) {
    std::vector<std::string> names;
    for (const OpDef* known : all_ops()) names.push_back(known->name);
    usage_error(fmt::format("there is no op '{}'", name), scope, suggest(name, names));
  }
  Op op{.def = def, .operands = std::move(operands), .attrs = std::move(attrs), .phase = phase, .scope = scope};
  return graph_.append(std::move(op)).results;
}

ValueId Builder::op(const std::string& name, std::vector<ValueId> operands, Attrs attrs) {
  std::vector<ValueId> results = ops(name, std::move(operands), std::move(attrs));
  ESPALIER_ASSERT(results.size() == 1);
  return results.front();
}

}  // namespace espalier

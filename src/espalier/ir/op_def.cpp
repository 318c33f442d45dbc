#include "espalier/ir/op_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "espalier/base/nearest.h"

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

namespace {

bool is_kind(const Attr& attr, AttrKind kind) {
  switch (kind) {
    case AttrKind::kInteger: return std::holds_alternative<int64_t>(attr);
    case AttrKind::kNumber: return std::holds_alternative<double>(attr) || std::holds_alternative<int64_t>(attr);
    case AttrKind::kText: return std::holds_alternative<std::string>(attr);
    case AttrKind::kIntegers: return std::holds_alternative<std::vector<int64_t>>(attr);
    case AttrKind::kGraph: return std::holds_alternative<std::shared_ptr<const Graph>>(attr);
  }
  return false;
}

const char* to_string(AttrKind kind) {
  constexpr const char* kNames[] = {"an integer", "a number", "a text", "a list of integers", "a graph"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace

void check_attrs(const OpDef& def, const Attrs& attrs, const std::string& where) {
  std::vector<std::string> known;
  auto check = [&](const AttrSpec& spec, bool required) {
    known.push_back(spec.name);
    auto found = std::find_if(attrs.begin(), attrs.end(), [&](const auto& entry) { return entry.first == spec.name; });
    if (found == attrs.end() && required) usage_error(fmt::format("op '{}' needs the attribute '{}'", def.name, spec.name), where);
    if (found != attrs.end() && !is_kind(found->second, spec.kind))
      usage_error(fmt::format("attribute '{}' of op '{}' has to be {}", spec.name, def.name, to_string(spec.kind)), where);
  };
  for (const AttrSpec& spec : def.attributes) check(spec, true);
  for (const AttrSpec& spec : def.optional_attributes) check(spec, false);
  for (const auto& [name, value] : attrs)
    if (std::find(known.begin(), known.end(), name) == known.end())
      usage_error(fmt::format("op '{}' has no attribute '{}'", def.name, name), where,
                  known.empty() ? "it takes none" : suggest(name, known));
}

FactorRule rule_of(const OpDef& def, const OpSignature& signature) {
  if (def.rule != nullptr) return def.rule(signature);
  if (def.elementwise()) return elementwise_rule(signature.shapes(), def.result_count, signature.where);
  FactorRule rule = parse_rule(def.factors, signature.shapes(), signature.where);
  rule.reduction = def.reduction;
  return rule;
}

std::vector<TensorType> result_types(const OpDef& def, const OpSignature& signature) {
  check_attrs(def, signature.attrs, signature.where);
  FactorRule rule = rule_of(def, signature);
  DType dtype = def.any_dtype && !signature.operands.empty() ? signature.operands.front().dtype : def.result_dtype;
  std::vector<TensorType> types;
  for (int r = 0; r < static_cast<int>(rule.results.size()); ++r) types.push_back({dtype, rule.result_shape(r)});
  return types;
}

}  // namespace espalier

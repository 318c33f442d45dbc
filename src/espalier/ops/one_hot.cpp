#include <fmt/format.h>

#include <cstring>

#include "espalier/ops/labels.h"

namespace espalier::ops::one_hot {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& shape = signature.operands[0].shape;
  const int64_t depth = signature.attrs.integer("depth");
  if (depth < 0 || shape.rank() == kMaxRank)
    usage_error(fmt::format("cannot add a dim of {} to the shape {}", depth, to_string(shape)), signature.where);
  std::string letters = leading_letters(shape.rank());
  return parse_rule(letters + "->" + letters + "n", {shape}, signature.where, {{'n', depth}});
}

Kernel cpu(const LocalOp& op) {
  const int64_t labels = op.operands[0].shape.volume();
  return {.run = [range = class_range(op.results[0]), labels](const KernelCall& call) {
    if (labels * range.size == 0) return;
    auto* result = call.result<float>(0);
    std::memset(result, 0, static_cast<size_t>(labels * range.size) * sizeof(float));
    for (int64_t i = 0; i < labels; ++i)
      if (int64_t place = range.place(call.operand<int32_t>(0)[i]); place >= 0) result[i * range.size + place] = 1;
  }};
}

}  // namespace

extern const OpDef def{
    .name = "one_hot",
    .doc = "labels (...) -> (..., depth): 1 at the label, 0 elsewhere and for a label outside",
    .rule = rule,
    .operand_dtypes = {DType::kI32},
    .attributes = {{"depth", AttrKind::kInteger}},
    .no_grad_operands = {0},
    .cpu = cpu,
    .samples = {{.operands = {{7}}, .attrs = {{"depth", int64_t{13}}}, .integer_limit = {13}},
                {.operands = {{2, 3}}, .attrs = {{"depth", int64_t{4}}}, .integer_limit = {6}},
                {.operands = {{}}, .attrs = {{"depth", int64_t{1}}}, .integer_limit = {1}},
                {.operands = {{0}}, .attrs = {{"depth", int64_t{3}}}, .integer_limit = {3}}},
};

}  // namespace espalier::ops::one_hot

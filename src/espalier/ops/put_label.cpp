#include <fmt/format.h>

#include <cstring>

#include "espalier/ops/labels.h"

namespace espalier::ops::put_label {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& shape = signature.operands[0].shape;
  const int64_t depth = signature.attrs.integer("depth");
  if (depth < 0 || shape.rank() == kMaxRank)
    usage_error(fmt::format("cannot add a dim of {} to the shape {}", depth, to_string(shape)), signature.where);
  std::string letters = leading_letters(shape.rank());
  return parse_rule(letters + "," + letters + "->" + letters + "n", signature.shapes(), signature.where, {{'n', depth}});
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("take_label", {d[0], op.operands[1]}), kNoValue};
}

Kernel cpu(const LocalOp& op) {
  return {.run = [range = class_range(op.results[0]), labels = op.operands[0].shape.volume()](const KernelCall& call) {
    if (labels * range.size == 0) return;
    auto* result = call.result<float>(0);
    std::memset(result, 0, static_cast<size_t>(labels * range.size) * sizeof(float));
    for (int64_t i = 0; i < labels; ++i)
      if (int64_t place = range.place(call.operand<int32_t>(1)[i]); place >= 0) result[i * range.size + place] = call.operand<float>(0)[i];
  }};
}

}  // namespace

extern const OpDef def{
    .name = "put_label",
    .doc = "g (...), labels (...) -> (..., depth): g at the label, 0 elsewhere; the gradient of take_label",
    .rule = rule,
    .linearity = Linearity::kEach,
    .linear_operands = {0},
    .operand_dtypes = {DType::kF32, DType::kI32},
    .operand_count = 2,
    .attributes = {{"depth", AttrKind::kInteger}},
    .grad = gradient,
    .no_grad_operands = {1},
    .cpu = cpu,
    .samples = {{.operands = {{7}, {7}}, .attrs = {{"depth", int64_t{13}}}, .integer_limit = {0, 13}},
                {.operands = {{2, 3}, {2, 3}}, .attrs = {{"depth", int64_t{4}}}, .integer_limit = {0, 6}},
                {.operands = {{}, {}}, .attrs = {{"depth", int64_t{3}}}, .integer_limit = {0, 3}}},
};

}  // namespace espalier::ops::put_label

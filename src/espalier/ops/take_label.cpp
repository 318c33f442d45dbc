#include "espalier/ops/labels.h"

namespace espalier::ops::take_label {
namespace {

FactorRule rule(const OpSignature& signature) {
  need_class_dim(signature.operands[0].shape, signature.where);
  std::string letters = leading_letters(signature.operands[0].shape.rank() - 1);
  return parse_rule(letters + "n," + letters + "->" + letters, signature.shapes(), signature.where);
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("put_label", {d[0], op.operands[1]}, {{"depth", b.shape(op.operands[0]).back()}}), kNoValue};
}

Kernel cpu(const LocalOp& op) {
  return {.run = [range = class_range(op.operands[0]), labels = op.operands[1].shape.volume()](const KernelCall& call) {
    const auto* x = call.operand<float>(0);
    for (int64_t i = 0; i < labels; ++i) {
      int64_t place = range.place(call.operand<int32_t>(1)[i]);
      call.result<float>(0)[i] = place >= 0 ? x[i * range.size + place] : 0;
    }
  }};
}

double flops(const OpSignature& signature) { return static_cast<double>(signature.operands[1].shape.volume()); }

}  // namespace

extern const OpDef def{
    .name = "take_label",
    .doc = "x (..., n), labels (...) -> (...): x at the label, 0 for a label outside",
    .rule = rule,
    .linearity = Linearity::kEach,
    .linear_operands = {0},
    .operand_dtypes = {DType::kF32, DType::kI32},
    .operand_count = 2,
    .grad = gradient,
    .no_grad_operands = {1},
    .flops = flops,
    .cpu = cpu,
    .samples = {{.operands = {{7, 13}, {7}}, .integer_limit = {0, 13}},
                {.operands = {{2, 3, 5}, {2, 3}}, .integer_limit = {0, 7}},
                {.operands = {{4}, {}}, .integer_limit = {0, 4}},
                {.operands = {{0, 3}, {0}}, .integer_limit = {0, 3}}},
};

}  // namespace espalier::ops::take_label

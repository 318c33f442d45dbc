#include "espalier/ops/labels.h"

namespace espalier::ops::softmax_cross_entropy {
namespace {

FactorRule rule(const OpSignature& signature) {
  need_class_dim(signature.operands[0].shape, signature.where);
  std::string letters = leading_letters(signature.operands[0].shape.rank() - 1);
  return parse_rule(letters + "n," + letters + "," + letters + "->" + letters, signature.shapes(), signature.where);
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("softmax_cross_entropy_grad", {op.operands[0], op.operands[1], op.operands[2], d[0]}), kNoValue, kNoValue};
}

Kernel cpu(const LocalOp& op) {
  return {.run = [range = class_range(op.operands[0]), labels = op.operands[2].shape.volume()](const KernelCall& call) {
    const auto* x = call.operand<float>(0);
    for (int64_t i = 0; i < labels; ++i) {
      int64_t place = range.place(call.operand<int32_t>(2)[i]);
      call.result<float>(0)[i] = place >= 0 ? call.operand<float>(1)[i] - x[i * range.size + place] : 0;
    }
  }};
}

double flops(const OpSignature& signature) { return static_cast<double>(signature.operands[2].shape.volume()); }

}  // namespace

// The gradient to x is that of the whole loss: lse is taken as logsumexp(x), and its dependence on x is included.
extern const OpDef def{
    .name = "softmax_cross_entropy",
    .doc = "x (..., n), lse (...) = logsumexp(x), labels (...) -> (...): lse - x at the label, 0 for a label outside",
    .rule = rule,
    .operand_dtypes = {DType::kF32, DType::kF32, DType::kI32},
    .operand_count = 3,
    .grad = gradient,
    .no_grad_operands = {1, 2},
    .flops = flops,
    .cpu = cpu,
    .samples = {{.operands = {{7, 13}, {7}, {7}}, .low = -3, .high = 3, .integer_limit = {0, 0, 13}, .prepare = prepare_lse},
                {.operands = {{2, 3, 5}, {2, 3}, {2, 3}}, .integer_limit = {0, 0, 5}, .prepare = prepare_lse},
                {.operands = {{4}, {}, {}}, .integer_limit = {0, 0, 4}, .prepare = prepare_lse},
                {.operands = {{0, 3}, {0}, {0}}, .integer_limit = {0, 0, 3}, .prepare = prepare_lse}},
};

}  // namespace espalier::ops::softmax_cross_entropy

#include "espalier/ops/labels.h"
#include "espalier/ops/parallel.h"
#include "espalier/ops/reduce_math.h"

namespace espalier::ops::softmax_cross_entropy_grad {
namespace {

FactorRule rule(const OpSignature& signature) {
  need_class_dim(signature.operands[0].shape, signature.where);
  std::string letters = leading_letters(signature.operands[0].shape.rank() - 1);
  return parse_rule(letters + "n," + letters + "," + letters + "," + letters + "->" + letters + "n", signature.shapes(), signature.where);
}

// A label in nobody's range has loss 0, which does not depend on x; telling that from a label in another device's range takes the whole.
bool has_loss(int32_t label, int64_t classes) { return label >= 0 && label < classes; }

void row(const KernelCall& call, ClassRange range, int64_t classes, int64_t i) {
  float* out = call.result<float>(0) + i * range.size;
  const int32_t label = call.operand<int32_t>(2)[i];
  const float g = has_loss(label, classes) ? call.operand<float>(3)[i] : 0;
  shifted_exp(call.operand<float>(0) + i * range.size, call.operand<float>(1)[i], out, range.size);
  if (int64_t place = range.place(label); place >= 0) out[place] -= 1;
  scale_run(out, g, range.size);
}

Kernel cpu(const LocalOp& op) {
  return {.run = [range = class_range(op.operands[0]), classes = op.operands[0].logical.back(), rows = op.operands[2].shape.volume(),
                  threads = op.threads](const KernelCall& call) {
    if (range.size == 0) return;
    parallel_for(threads, rows, exp_work(rows, rows * range.size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row(call, range, classes, i);
    });
  }};
}

double flops(const OpSignature& signature) { return 20 * static_cast<double>(signature.operands[0].shape.volume()); }  // exp costs about 20

}  // namespace

extern const OpDef def{
    .name = "softmax_cross_entropy_grad",
    .doc = "x (..., n), lse (...), labels (...), g (...) -> g (exp(x - lse) - [j = label])",
    .rule = rule,
    .linearity = Linearity::kEach,
    .linear_operands = {3},
    .operand_dtypes = {DType::kF32, DType::kF32, DType::kI32, DType::kF32},
    .operand_count = 4,
    .flops = flops,
    .cpu = cpu,
    .in_place = {0},
    .samples = {{.operands = {{7, 13}, {7}, {7}, {7}}, .low = -3, .high = 3, .integer_limit = {0, 0, 13, 0}, .prepare = prepare_lse},
                {.operands = {{2, 3, 5}, {2, 3}, {2, 3}, {2, 3}}, .integer_limit = {0, 0, 7, 0}, .prepare = prepare_lse},
                {.operands = {{4}, {}, {}, {}}, .integer_limit = {0, 0, 4, 0}, .prepare = prepare_lse}},
};

}  // namespace espalier::ops::softmax_cross_entropy_grad

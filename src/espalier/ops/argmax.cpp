#include <cmath>

#include "espalier/ops/labels.h"
#include "espalier/ops/parallel.h"

namespace espalier::ops::argmax {
namespace {

FactorRule rule(const OpSignature& signature) {
  need_class_dim(signature.operands[0].shape, signature.where);
  std::string letters = leading_letters(signature.operands[0].shape.rank() - 1);
  return parse_rule(letters + "[n]->" + letters, signature.shapes(), signature.where);
}

int32_t first_maximum(const float* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n && !std::isnan(x[best]); ++i)
    if (x[i] > x[best] || std::isnan(x[i])) best = i;
  return static_cast<int32_t>(best);
}

Kernel cpu(const LocalOp& op) {
  return {.run = [n = op.operands[0].shape.back(), rows = op.results[0].shape.volume(), threads = op.threads](const KernelCall& call) {
    parallel_for(threads, rows, rows * n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) call.result<int32_t>(0)[i] = first_maximum(call.operand<float>(0) + i * n, n);
    });
  }};
}

}  // namespace

extern const OpDef def{
    .name = "argmax",
    .doc = "place of the first maximum in the last dim; the first NaN where there is one",
    .rule = rule,
    .result_dtype = DType::kI32,
    .cpu = cpu,
    .samples = {{{{7, 13}}}, {{{2, 3, 5}}}, {{{4}}}, {{{3, 1}}}, {{{0, 3}}}},
};

}  // namespace espalier::ops::argmax

#include <algorithm>
#include <cmath>
#include <limits>

#include "espalier/ops/elementwise.h"
#include "espalier/ops/parallel.h"
#include "espalier/ops/reduce_math.h"
#include "espalier/ops/reduction.h"

namespace espalier::ops::logsumexp {
namespace {

FactorRule rule(const OpSignature& signature) { return reduction_rule(signature, Reduction::kLogSumExp); }

// The softmax, from the result.
std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims kept = kept_shape(b.shape(op.operands[0]), op.attrs.integers("dims"));
  ValueId softmax = b.op("exp", {b.op("subtract", {op.operands[0], reshaped(b, op.results[0], kept)})});
  return {b.op("multiply", {softmax, reshaped(b, d[0], kept)})};
}

// What is subtracted before exp: the maximum, but 0 where that is infinite, since inf - inf is NaN.
float shift_of(float largest) { return std::isinf(largest) ? 0 : largest; }

float finish(float shift, double sum) { return static_cast<float>(static_cast<double>(shift) + std::log(sum)); }

void unit_of_run(const ReductionWalk& walk, const float* first, float* to) {
  float shift = -std::numeric_limits<float>::infinity();
  visit_runs(walk, [&](int64_t offset) { shift = max_run(first + offset, shift, walk.run); });
  shift = shift_of(shift);
  double sum = 0;
  visit_runs(walk, [&](int64_t offset) { sum += exp_run(first + offset, shift, nullptr, walk.run); });
  *to = finish(shift, sum);
}

void unit_of_rows(const ReductionWalk& walk, const float* first, float* to, int64_t n) {
  float shift[kReductionWidth];
  double sums[kReductionWidth] = {};
  std::fill_n(shift, n, -std::numeric_limits<float>::infinity());
  visit_runs(walk, [&](int64_t offset) { max_row(first + offset, shift, n); });
  std::transform(shift, shift + n, shift, shift_of);
  visit_runs(walk, [&](int64_t offset) { exp_row(first + offset, shift, nullptr, sums, n); });
  std::transform(shift, shift + n, sums, to, finish);
}

Kernel cpu(const LocalOp& op) {
  return {.run = [walk = reduction_walk(op.operands[0].shape, op.attrs->integers("dims")), threads = op.threads](const KernelCall& call) {
    parallel_for(threads, walk.units, exp_work(walk.units, walk.elements), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const float* first = call.operand<float>(0) + walk.first_element(unit);
        float* to = call.result<float>(0) + walk.first_result(unit);
        if (walk.rows)
          unit_of_rows(walk, first, to, walk.results(unit));
        else
          unit_of_run(walk, first, to);
      }
    });
  }};
}

double flops(const OpSignature& signature) { return 20 * static_cast<double>(signature.operands[0].shape.volume()); }  // exp costs about 20

}  // namespace

extern const OpDef def{
    .name = "logsumexp",
    .doc = "log of the sum of exp over dims, which vanish or are kept as 1, without overflow; -inf over no elements",
    .rule = rule,
    .attributes = kReductionAttributes,
    .grad = gradient,
    .flops = flops,
    .cpu = cpu,
    .samples = reduction_samples(),
};

}  // namespace espalier::ops::logsumexp

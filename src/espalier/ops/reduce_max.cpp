#include <algorithm>
#include <limits>

#include "espalier/ops/elementwise.h"
#include "espalier/ops/parallel.h"
#include "espalier/ops/reduce_math.h"
#include "espalier/ops/reduction.h"

namespace espalier::ops::reduce_max {
namespace {

FactorRule rule(const OpSignature& signature) { return reduction_rule(signature, Reduction::kMax); }

// To all equal maxima in equal shares.
std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const std::vector<int64_t> dims = op.attrs.integers("dims");
  const Dims kept = kept_shape(b.shape(op.operands[0]), dims);
  ValueId at_maximum = b.op("equal", {op.operands[0], reshaped(b, op.results[0], kept)});
  ValueId count = b.op("reduce_sum", {at_maximum}, {{"dims", dims}, {"keep", int64_t{1}}});
  return {b.op("multiply", {at_maximum, b.op("divide", {reshaped(b, d[0], kept), count})})};
}

void max_unit(const ReductionWalk& walk, int64_t unit, const float* x, float* result) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const float* first = x + walk.first_element(unit);
  float* to = result + walk.first_result(unit);
  const int64_t n = walk.results(unit);
  std::fill_n(to, n, kLeast);
  if (walk.rows)
    visit_runs(walk, [&](int64_t offset) { max_row(first + offset, to, n); });
  else
    visit_runs(walk, [&](int64_t offset) { *to = max_run(first + offset, *to, walk.run); });
}

Kernel cpu(const LocalOp& op) {
  return {.run = [walk = reduction_walk(op.operands[0].shape, op.attrs->integers("dims")), threads = op.threads](const KernelCall& call) {
    parallel_for(threads, walk.units, walk.elements, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) max_unit(walk, unit, call.operand<float>(0), call.result<float>(0));
    });
  }};
}

}  // namespace

extern const OpDef def{
    .name = "reduce_max",
    .doc = "largest value over dims, which vanish or are kept as 1; -inf over no elements",
    .rule = rule,
    .attributes = kReductionAttributes,
    .grad = gradient,
    .cpu = cpu,
    .samples = reduction_samples(),
};

}  // namespace espalier::ops::reduce_max

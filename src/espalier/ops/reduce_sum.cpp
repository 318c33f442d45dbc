#include <algorithm>
#include <numeric>

#include "espalier/ops/elementwise.h"
#include "espalier/ops/parallel.h"
#include "espalier/ops/reduce_math.h"
#include "espalier/ops/reduction.h"

namespace espalier::ops::reduce_sum {
namespace {

FactorRule rule(const OpSignature& signature) { return reduction_rule(signature, Reduction::kSum); }

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims shape = b.shape(op.operands[0]);
  std::vector<int64_t> dims(static_cast<size_t>(shape.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  ValueId kept = reshaped(b, d[0], kept_shape(shape, op.attrs.integers("dims")));
  return {b.op("broadcast", {kept}, {{"shape", shape.vector()}, {"dims", dims}})};
}

void sum_unit(const ReductionWalk& walk, int64_t unit, const float* x, float* result) {
  const float* first = x + walk.first_element(unit);
  if (!walk.rows) {
    double sum = 0;
    visit_runs(walk, [&](int64_t offset) { sum += sum_run(first + offset, walk.run); });
    result[unit] = static_cast<float>(sum);
    return;
  }
  const int64_t n = walk.results(unit);
  double sums[kReductionWidth] = {};
  if (walk.reduced_sizes.size() == 1)
    sum_rows(first, walk.reduced_strides[0], walk.reduced_sizes[0], sums, n);
  else
    visit_runs(walk, [&](int64_t offset) { sum_row(first + offset, sums, n); });
  std::transform(sums, sums + n, result + walk.first_result(unit), [](double sum) { return static_cast<float>(sum); });
}

Kernel cpu(const LocalOp& op) {
  return {.run = [walk = reduction_walk(op.operands[0].shape, op.attrs->integers("dims")), threads = op.threads](const KernelCall& call) {
    parallel_for(threads, walk.units, walk.elements, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) sum_unit(walk, unit, call.operand<float>(0), call.result<float>(0));
    });
  }};
}

}  // namespace

extern const OpDef def{
    .name = "reduce_sum",
    .doc = "sum over dims, which vanish or are kept as 1",
    .rule = rule,
    .linearity = Linearity::kJoint,
    .attributes = kReductionAttributes,
    .grad = gradient,
    .cpu = cpu,
    .samples = reduction_samples(),
};

}  // namespace espalier::ops::reduce_sum

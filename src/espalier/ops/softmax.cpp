#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "espalier/ops/parallel.h"
#include "espalier/ops/reduce_math.h"
#include "espalier/ops/reduction.h"

namespace espalier::ops::softmax {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& shape = signature.operands[0].shape;
  const int64_t dim = signature.attrs.integer("dim");
  if (dim < 0 || dim >= shape.rank())
    usage_error(fmt::format("there is no dim {} in the shape {}", dim, to_string(shape)), signature.where, "count dims from 0");
  FactorRule rule = elementwise_rule({shape}, 1, signature.where);
  rule.factors[static_cast<size_t>(dim)].kind = FactorKind::kWhole;
  return rule;
}

// y (g - sum of g y).
std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const ValueId y = op.results[0];
  ValueId sum =
      b.op("reduce_sum", {b.op("multiply", {d[0], y})}, {{"dims", std::vector<int64_t>{op.attrs.integer("dim")}}, {"keep", int64_t{1}}});
  return {b.op("multiply", {y, b.op("subtract", {d[0], sum})})};
}

void unit_of_run(const ReductionWalk& walk, int64_t unit, const float* x, float* y) {
  const int64_t first = walk.first_element(unit);
  float largest = max_run(x + first, -std::numeric_limits<float>::infinity(), walk.run);
  double sum = exp_run(x + first, largest, y + first, walk.run);
  scale_run(y + first, static_cast<float>(1 / sum), walk.run);
}

void unit_of_rows(const ReductionWalk& walk, int64_t unit, const float* x, float* y) {
  const int64_t first = walk.first_element(unit), n = walk.results(unit);
  float largest[kReductionWidth];
  double sums[kReductionWidth] = {};
  std::fill_n(largest, n, -std::numeric_limits<float>::infinity());
  visit_runs(walk, [&](int64_t offset) { max_row(x + first + offset, largest, n); });
  visit_runs(walk, [&](int64_t offset) { exp_row(x + first + offset, largest, y + first + offset, sums, n); });
  visit_runs(walk, [&](int64_t offset) {
    for (int64_t i = 0; i < n; ++i) y[first + offset + i] *= static_cast<float>(1 / sums[i]);
  });
}

Kernel cpu(const LocalOp& op) {
  return {.run = [walk = reduction_walk(op.operands[0].shape, {op.attrs->integer("dim")}), threads = op.threads](const KernelCall& call) {
    parallel_for(threads, walk.units, exp_work(walk.units, walk.elements), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit)
        (walk.rows ? unit_of_rows : unit_of_run)(walk, unit, call.operand<float>(0), call.result<float>(0));
    });
  }};
}

double flops(const OpSignature& signature) { return 25 * static_cast<double>(signature.operands[0].shape.volume()); }

OpSample sample(Dims shape, int64_t dim) { return {{shape}, {{"dim", dim}}, -3, 3}; }

}  // namespace

extern const OpDef def{
    .name = "softmax",
    .doc = "exp(x) over its sum along a dim",
    .rule = rule,
    .attributes = {{"dim", AttrKind::kInteger}},
    .grad = gradient,
    .flops = flops,
    .cpu = cpu,
    .in_place = {0},
    .samples = {sample({7, 13}, 1), sample({7, 13}, 0), sample({2, 3, 5}, 1), sample({3, 1}, 1), sample({4}, 0), sample({0, 3}, 1)},
};

}  // namespace espalier::ops::softmax

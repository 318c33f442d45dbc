#include <fmt/format.h>

#include <algorithm>

#include "espalier/ir/graph.h"
#include "espalier/ops/strided.h"

namespace espalier::ops::transpose {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& shape = signature.operands[0].shape;
  const std::vector<int64_t>& permutation = signature.attrs.integers("permutation");
  FactorRule rule{.factors = {}, .operands = {{}}, .results = {{}}};
  for (int d = 0; d < shape.rank(); ++d) {
    if (std::count(permutation.begin(), permutation.end(), d) != 1 || permutation.size() != static_cast<size_t>(shape.rank()))
      usage_error(fmt::format("({}) is no permutation of {} dims", fmt::join(permutation, ", "), shape.rank()), signature.where,
                  "name every dim once, counted from 0");
    rule.factors.push_back({static_cast<char>('a' + d), FactorKind::kPass, shape[d]});
    rule.operands[0].push_back({static_cast<int8_t>(d)});
  }
  if (permutation.size() != static_cast<size_t>(shape.rank()))
    usage_error(fmt::format("({}) is no permutation of {} dims", fmt::join(permutation, ", "), shape.rank()), signature.where);
  for (int64_t d : permutation) rule.results[0].push_back({static_cast<int8_t>(d)});
  return rule;
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const std::vector<int64_t> permutation = op.attrs.integers("permutation");
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {b.op("transpose", {d[0]}, {{"permutation", inverse}})};
}

Kernel cpu(const LocalOp& op) {
  const Dims& shape = op.results[0].shape;
  const Dims strides = row_major_strides(op.operands[0].shape);
  StridedCopy copy{.shape = shape, .from_strides = {}, .to_strides = row_major_strides(shape)};
  for (int64_t d : op.attrs->integers("permutation")) copy.from_strides.push_back(strides[static_cast<int>(d)]);
  return {.run = [copy = simplified(copy), threads = op.threads](const KernelCall& call) {
    run(copy, call.operand<uint32_t>(0), call.result<uint32_t>(0), threads);
  }};
}

OpSample sample(Dims shape, std::vector<int64_t> permutation) { return {{shape}, {{"permutation", std::move(permutation)}}}; }

}  // namespace

extern const OpDef def{
    .name = "transpose",
    .doc = "dims in another order: dim i of the result is dim permutation[i] of the operand",
    .rule = rule,
    .linearity = Linearity::kJoint,
    .any_dtype = true,
    .attributes = {{"permutation", AttrKind::kIntegers}},
    .grad = gradient,
    .cpu = cpu,
    .samples = {sample({7, 13}, {1, 0}), sample({2, 3, 5}, {2, 0, 1}), sample({2, 3, 4, 5}, {0, 2, 1, 3}), sample({4}, {0}), sample({}, {}),
                sample({0, 3}, {1, 0})},
};

}  // namespace espalier::ops::transpose

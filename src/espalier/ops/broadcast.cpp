#include <fmt/format.h>

#include <algorithm>

#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_program.h"

namespace espalier::ops::broadcast {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& operand = signature.operands[0].shape;
  const std::vector<int64_t>&shape = signature.attrs.integers("shape"), &dims = signature.attrs.integers("dims");
  if (shape.size() > static_cast<size_t>(kMaxRank))
    usage_error(fmt::format("a shape of rank {} is too long", shape.size()), signature.where, fmt::format("at most {} dims", kMaxRank));
  checked_volume(Dims(shape), signature.where);
  if (dims.size() != static_cast<size_t>(operand.rank()))
    usage_error(fmt::format("'dims' names {} dims for an operand of rank {}", dims.size(), operand.rank()), signature.where);
  FactorRule rule{.factors = {}, .operands = {{}}, .results = {{}}};
  for (size_t d = 0; d < shape.size(); ++d) {
    rule.factors.push_back({static_cast<char>('a' + d), FactorKind::kPass, shape[d]});
    rule.results[0].push_back({static_cast<int8_t>(d)});
  }
  for (int i = 0; i < operand.rank(); ++i) {
    const int64_t d = dims[static_cast<size_t>(i)];
    if (d < 0 || d >= static_cast<int64_t>(shape.size()) || (i > 0 && d <= dims[static_cast<size_t>(i) - 1]))
      usage_error(fmt::format("'dims' has {} at place {}", d, i), signature.where, "name dims of the result in rising order");
    if (operand[i] != 1 && operand[i] != shape[static_cast<size_t>(d)])
      usage_error(fmt::format("a dim of size {} does not broadcast to size {}", operand[i], shape[static_cast<size_t>(d)]),
                  signature.where);
    rule.operands[0].push_back(operand[i] == shape[static_cast<size_t>(d)] ? FactorDim{static_cast<int8_t>(d)} : FactorDim{});
  }
  return rule;
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims operand = b.shape(op.operands[0]);
  const std::vector<int64_t> dims = op.attrs.integers("dims");
  std::vector<int64_t> repeated;
  for (int64_t r = 0; r < b.shape(d[0]).rank(); ++r) {
    auto own = std::find(dims.begin(), dims.end(), r) - dims.begin();
    if (own == operand.rank() || (operand[static_cast<int>(own)] == 1 && b.shape(d[0])[static_cast<int>(r)] != 1)) repeated.push_back(r);
  }
  ValueId sum = repeated.empty() ? d[0] : b.op("reduce_sum", {d[0]}, {{"dims", repeated}, {"keep", int64_t{0}}});
  return {reshaped(b, sum, operand)};
}

Kernel cpu(const LocalOp& op) {
  const Dims& operand = op.operands[0].shape;
  Dims aligned = Dims::filled(op.results[0].shape.rank(), 1);
  for (int i = 0; i < operand.rank(); ++i) aligned[static_cast<int>(op.attrs->integers("dims")[static_cast<size_t>(i)])] = operand[i];
  return tile_kernel(copy_program(), {aligned}, op.results[0].shape, op.threads);
}

OpSample sample(Dims operand, std::vector<int64_t> shape, std::vector<int64_t> dims) {
  return {{operand}, {{"shape", std::move(shape)}, {"dims", std::move(dims)}}};
}

}  // namespace

extern const OpDef def{
    .name = "broadcast",
    .doc = "repeats a tensor: dim i of the operand becomes dim dims[i] of the result, others are new",
    .rule = rule,
    .linearity = Linearity::kJoint,
    .any_dtype = true,
    .attributes = {{"dims", AttrKind::kIntegers}, {"shape", AttrKind::kIntegers}},
    .grad = gradient,
    .cpu = cpu,
    .repeats = true,
    .samples = {sample({13}, {7, 13}, {1}), sample({7}, {7, 13}, {0}), sample({}, {5, 3}, {}), sample({7, 1}, {7, 4}, {0, 1}),
                sample({3, 5}, {3, 2, 5}, {0, 2}), sample({1}, {1, 1}, {1}), sample({2, 3}, {2, 3, 4}, {0, 1}), sample({3}, {0, 3}, {1})},
};

}  // namespace espalier::ops::broadcast

#include <fmt/format.h>

#include "espalier/ir/graph.h"
#include "espalier/ops/strided.h"

namespace espalier::ops::concat {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& first = signature.operands[0].shape;
  const int64_t dim = signature.attrs.integer("dim");
  if (dim < 0 || dim >= first.rank())
    usage_error(fmt::format("there is no dim {} in the shape {}", dim, to_string(first)), signature.where, "count dims from 0");
  if (signature.operands.size() > 100) usage_error("more than 100 operands", signature.where, "put them together in steps");
  FactorRule rule{.factors = {}, .operands = std::vector<FactorTensor>(signature.operands.size()), .results = {{}}};
  for (int d = 0; d < first.rank(); ++d) {
    rule.factors.push_back({static_cast<char>('a' + d), d == dim ? FactorKind::kWhole : FactorKind::kPass, d == dim ? 0 : first[d]});
    rule.results[0].push_back({static_cast<int8_t>(d)});
  }
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    const Dims& shape = signature.operands[i].shape;
    for (int d = 0; d < first.rank(); ++d) {
      if (shape.rank() != first.rank() || (d != dim && shape[d] != first[d]))
        usage_error(fmt::format("shapes {} and {} do not agree outside dim {}", to_string(first), to_string(shape), dim), signature.where);
      if (d == dim) {
        rule.operands[i].push_back({static_cast<int8_t>(rule.factors.size())});
        rule.factors.push_back({static_cast<char>('A' + i % 26), FactorKind::kWhole, shape[d]});
        rule.factors[static_cast<size_t>(dim)].size += shape[d];
      } else {
        rule.operands[i].push_back({static_cast<int8_t>(d)});
      }
    }
  }
  return rule;
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const auto dim = static_cast<int>(op.attrs.integer("dim"));
  std::vector<ValueId> gradients;
  std::vector<int64_t> begin(static_cast<size_t>(b.shape(d[0]).rank()), 0);
  for (ValueId operand : op.operands) {
    const Dims shape = b.shape(operand);
    gradients.push_back(b.op("slice", {d[0]}, {{"begin", begin}, {"size", shape.vector()}}));
    begin[static_cast<size_t>(dim)] += shape[dim];
  }
  return gradients;
}

Kernel cpu(const LocalOp& op) {
  const auto dim = static_cast<int>(op.attrs->integer("dim"));
  const Dims strides = row_major_strides(op.results[0].shape);
  std::vector<StridedCopy> copies;
  int64_t at = 0;
  for (const LocalTensor& operand : op.operands) {
    copies.push_back(simplified(
        {.shape = operand.shape, .from_strides = row_major_strides(operand.shape), .to_strides = strides, .to_start = at * strides[dim]}));
    at += operand.shape[dim];
  }
  return {.run = [copies, threads = op.threads](const KernelCall& call) {
    for (size_t i = 0; i < copies.size(); ++i)
      run(copies[i], call.operand<uint32_t>(static_cast<int>(i)), call.result<uint32_t>(0), threads);
  }};
}

}  // namespace

extern const OpDef def{
    .name = "concat",
    .doc = "operands one behind the other along a dim",
    .rule = rule,
    .linearity = Linearity::kJoint,
    .operand_count = -1,
    .any_dtype = true,
    .attributes = {{"dim", AttrKind::kInteger}},
    .grad = gradient,
    .cpu = cpu,
    .samples = {{{{7, 4}, {7, 12}}, {{"dim", int64_t{1}}}},
                {{{3, 5}, {1, 5}, {2, 5}}, {{"dim", int64_t{0}}}},
                {{{13}}, {{"dim", int64_t{0}}}},
                {{{0, 3}, {2, 3}}, {{"dim", int64_t{0}}}},
                {{{2, 3, 5}, {2, 1, 5}}, {{"dim", int64_t{1}}}}},
};

}  // namespace espalier::ops::concat

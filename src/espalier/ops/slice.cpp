#include <fmt/format.h>

#include "espalier/ir/graph.h"
#include "espalier/ops/window.h"

namespace espalier::ops::slice {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& from = signature.operands[0].shape;
  Window window = read_window(signature.attrs, "begin", from.rank(), signature.where);
  const std::vector<int64_t>& size = signature.attrs.integers("size");
  if (size.size() != static_cast<size_t>(from.rank()))
    usage_error(fmt::format("'size' needs {} entries", from.rank()), signature.where, "one entry a dim");
  for (int d = 0; d < from.rank(); ++d) {
    auto i = static_cast<size_t>(d);
    int64_t last = size[i] > 0 && size[i] <= from[d] && window.step[i] <= from[d] ? window.begin[i] + (size[i] - 1) * window.step[i] : -1;
    if (size[i] < 0 || size[i] > from[d] || (size[i] > 0 && (last < 0 || last >= from[d])) || window.begin[i] > from[d])
      usage_error(fmt::format("the slice leaves dim {}, which has {} elements", d, from[d]), signature.where);
  }
  return window_rule(window, from, Dims(size));
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims whole = b.shape(op.operands[0]), size = b.shape(d[0]);
  Window window = read_window(op.attrs, "begin", whole.rank(), op.scope);
  std::vector<int64_t> after;
  for (int i = 0; i < whole.rank(); ++i) {
    int64_t covered = size[i] == 0 ? 0 : (size[i] - 1) * window.step[static_cast<size_t>(i)] + 1;
    after.push_back(whole[i] - window.begin[static_cast<size_t>(i)] - covered);
  }
  return {b.op("pad", {d[0]}, {{"before", window.begin}, {"after", after}, {"step", window.step}})};
}

Kernel cpu(const LocalOp& op) {
  const Dims &from = op.operands[0].shape, &to = op.results[0].shape;
  StridedCopy copy = window_copy(read_window(*op.attrs, "begin", from.rank(), "slice"), to, from, true);
  return {.run = [copy, threads = op.threads](const KernelCall& call) {
    run(copy, call.operand<uint32_t>(0), call.result<uint32_t>(0), threads);
  }};
}

}  // namespace

extern const OpDef def{
    .name = "slice",
    .doc = "elements begin, begin + step, ... of every dim, `size` of them",
    .rule = rule,
    .linearity = Linearity::kJoint,
    .any_dtype = true,
    .attributes = {{"begin", AttrKind::kIntegers}, {"size", AttrKind::kIntegers}},
    .optional_attributes = {{"step", AttrKind::kIntegers}},
    .grad = gradient,
    .cpu = cpu,
    .samples =
        {{{{7, 13}}, {{"begin", std::vector<int64_t>{0, 3}}, {"size", std::vector<int64_t>{7, 5}}}},
         {{{7, 13}}, {{"begin", std::vector<int64_t>{2, 0}}, {"size", std::vector<int64_t>{4, 13}}}},
         {{{2, 9, 3}},
          {{"begin", std::vector<int64_t>{0, 1, 0}}, {"size", std::vector<int64_t>{2, 3, 3}}, {"step", std::vector<int64_t>{1, 3, 1}}}},
         {{{4, 3}}, {{"begin", std::vector<int64_t>{4, 0}}, {"size", std::vector<int64_t>{0, 3}}}}},
};

}  // namespace espalier::ops::slice

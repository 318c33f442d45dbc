#include <fmt/format.h>

#include <cstring>

#include "espalier/ir/graph.h"
#include "espalier/ops/window.h"

namespace espalier::ops::pad {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Dims& from = signature.operands[0].shape;
  Window window = read_window(signature.attrs, "before", from.rank(), signature.where);
  const std::vector<int64_t>& after = signature.attrs.integers("after");
  if (after.size() != static_cast<size_t>(from.rank()))
    usage_error(fmt::format("'after' needs {} entries", from.rank()), signature.where, "one entry a dim");
  Dims to = from;
  for (int d = 0; d < from.rank(); ++d) {
    auto i = static_cast<size_t>(d);
    constexpr int64_t kMost = int64_t{1} << 40;  // keeps the sum below from overflowing; no tensor is near it
    if (after[i] < 0 || after[i] > kMost || window.begin[i] > kMost || window.step[i] > kMost / (from[d] + 1))
      usage_error(fmt::format("the padding of dim {} is out of range", d), signature.where);
    to[d] = window.begin[i] + (from[d] == 0 ? 0 : (from[d] - 1) * window.step[i] + 1) + after[i];
  }
  checked_volume(to, signature.where);
  return window_rule(window, from, to);
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims shape = b.shape(op.operands[0]);
  Window window = read_window(op.attrs, "before", shape.rank(), op.scope);
  return {b.op("slice", {d[0]}, {{"begin", window.begin}, {"size", shape.vector()}, {"step", window.step}})};
}

Kernel cpu(const LocalOp& op) {
  const Dims &from = op.operands[0].shape, &to = op.results[0].shape;
  StridedCopy copy = window_copy(read_window(*op.attrs, "before", from.rank(), "pad"), from, to, false);
  return {.run = [copy, bytes = static_cast<size_t>(to.volume()) * sizeof(uint32_t), threads = op.threads](const KernelCall& call) {
    if (bytes > 0) std::memset(call.results[0], 0, bytes);
    run(copy, call.operand<uint32_t>(0), call.result<uint32_t>(0), threads);
  }};
}

}  // namespace

extern const OpDef def{
    .name = "pad",
    .doc = "zeros before, after and (with a step above 1) between the elements of every dim",
    .rule = rule,
    .linearity = Linearity::kJoint,
    .any_dtype = true,
    .attributes = {{"after", AttrKind::kIntegers}, {"before", AttrKind::kIntegers}},
    .optional_attributes = {{"step", AttrKind::kIntegers}},
    .grad = gradient,
    .cpu = cpu,
    .samples = {{{{7, 5}}, {{"before", std::vector<int64_t>{0, 2}}, {"after", std::vector<int64_t>{0, 3}}}},
                {{{3, 4}},
                 {{"before", std::vector<int64_t>{1, 0}}, {"after", std::vector<int64_t>{0, 0}}, {"step", std::vector<int64_t>{2, 1}}}},
                {{{0, 3}}, {{"before", std::vector<int64_t>{2, 0}}, {"after", std::vector<int64_t>{1, 0}}}}},
};

}  // namespace espalier::ops::pad

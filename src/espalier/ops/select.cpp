#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::select {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const ValueId condition = op.operands[0], zero = number(b, 0);
  ValueId da = b.op("select", {condition, d[0], zero}), db = b.op("select", {condition, zero, d[0]});
  return {kNoValue, unbroadcast(b, da, b.shape(op.operands[1])), unbroadcast(b, db, b.shape(op.operands[2]))};
}

std::vector<OpSample> shapes() {
  const std::vector<std::vector<Dims>> shapes = {{{7, 13}, {7, 13}, {7, 13}}, {{7, 1}, {13}, {}}, {{5}, {}, {5}}, {{0, 2}, {2}, {}}};
  std::vector<OpSample> samples;
  for (const auto& operands : shapes) {
    samples.push_back({operands});
    samples.back().prepare = [](const OpSample& sample, const std::vector<void*>& buffers) {  // a condition is 0 or not
      for (int64_t i = 0; i < sample.operands[0].volume(); ++i)
        if (auto* condition = static_cast<float*>(buffers[0]); condition[i] < 0) condition[i] = 0;
    };
  }
  return samples;
}

}  // namespace

extern const OpDef def{
    .name = "select",
    .doc = "a where the condition is not 0, else b",
    .operand_count = 3,
    .tile = tile::select,
    .grad = gradient,
    .no_grad_operands = {0},
    .samples = shapes(),
};

}  // namespace espalier::ops::select

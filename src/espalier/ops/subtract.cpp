#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::subtract {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims x = b.shape(op.operands[0]), y = b.shape(op.operands[1]);
  return {unbroadcast(b, d[0], x), b.op("negate", {unbroadcast(b, d[0], y)})};
}

}  // namespace

extern const OpDef def{
    .name = "subtract",
    .doc = "a - b",
    .linearity = Linearity::kJoint,
    .operand_count = 2,
    .tile = tile::subtract,
    .grad = gradient,
    .samples = binary_samples(-2, 2),
};

}  // namespace espalier::ops::subtract

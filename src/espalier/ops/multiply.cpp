#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::multiply {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims x = b.shape(op.operands[0]), y = b.shape(op.operands[1]);
  return {unbroadcast(b, b.op("multiply", {d[0], op.operands[1]}), x), unbroadcast(b, b.op("multiply", {d[0], op.operands[0]}), y)};
}

}  // namespace

extern const OpDef def{
    .name = "multiply",
    .doc = "a * b",
    .linearity = Linearity::kEach,
    .operand_count = 2,
    .tile = tile::multiply,
    .grad = gradient,
    .samples = binary_samples(-2, 2),
};

}  // namespace espalier::ops::multiply

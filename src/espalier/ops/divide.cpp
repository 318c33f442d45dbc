#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::divide {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Dims x = b.shape(op.operands[0]), y = b.shape(op.operands[1]);
  ValueId da = b.op("divide", {d[0], op.operands[1]});
  ValueId db = b.op("negate", {b.op("multiply", {da, op.results[0]})});
  return {unbroadcast(b, da, x), unbroadcast(b, db, y)};
}

}  // namespace

extern const OpDef def{
    .name = "divide",
    .doc = "a / b",
    .linearity = Linearity::kEach,
    .linear_operands = {0},
    .operand_count = 2,
    .tile = tile::divide,
    .grad = gradient,
    .samples = binary_samples(0.5, 2),
};

}  // namespace espalier::ops::divide

#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::minimum {
namespace {

// At a tie each operand gets half.
std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const ValueId x = op.operands[0], y = op.operands[1];
  ValueId half = b.op("multiply", {b.op("equal", {x, y}), number(b, 0.5)});
  ValueId to_x = b.op("add", {b.op("greater", {y, x}), half}), to_y = b.op("add", {b.op("greater", {x, y}), half});
  return {unbroadcast(b, b.op("multiply", {d[0], to_x}), b.shape(x)), unbroadcast(b, b.op("multiply", {d[0], to_y}), b.shape(y))};
}

}  // namespace

extern const OpDef def{
    .name = "minimum",
    .doc = "the smaller of a and b; NaN where one is",
    .operand_count = 2,
    .tile = tile::minimum,
    .grad = gradient,
    .samples = binary_samples(-2, 2),
};

}  // namespace espalier::ops::minimum

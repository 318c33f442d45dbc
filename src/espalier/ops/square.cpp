#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::square {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const ValueId x = op.operands[0];
  return {b.op("multiply", {d[0], b.op("add", {x, x})})};
}

}  // namespace

extern const OpDef def{
    .name = "square",
    .doc = "x * x",
    .tile = tile::square,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::square

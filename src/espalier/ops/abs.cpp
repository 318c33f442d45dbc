#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::abs {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("multiply", {d[0], b.op("sign", {op.operands[0]})})};
}

}  // namespace

extern const OpDef def{
    .name = "abs",
    .doc = "|x|; its gradient at 0 is 0",
    .tile = tile::abs,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::abs

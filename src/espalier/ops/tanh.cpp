#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::tanh {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  ValueId slope = b.op("subtract", {number(b, 1), b.op("square", {op.results[0]})});
  return {b.op("multiply", {d[0], slope})};
}

}  // namespace

extern const OpDef def{
    .name = "tanh",
    .doc = "hyperbolic tangent",
    .tile = tile::tanh,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::tanh

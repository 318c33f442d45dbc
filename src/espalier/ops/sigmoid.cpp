#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::sigmoid {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const ValueId y = op.results[0];
  ValueId slope = b.op("multiply", {y, b.op("subtract", {number(b, 1), y})});
  return {b.op("multiply", {d[0], slope})};
}

}  // namespace

extern const OpDef def{
    .name = "sigmoid",
    .doc = "1 / (1 + e^-x)",
    .tile = tile::sigmoid,
    .grad = gradient,
    .samples = unary_samples(-3, 3),
};

}  // namespace espalier::ops::sigmoid

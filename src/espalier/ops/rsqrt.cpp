#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::rsqrt {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const ValueId y = op.results[0];
  ValueId cube = b.op("multiply", {b.op("square", {y}), y});
  return {b.op("multiply", {d[0], b.op("multiply", {cube, number(b, -0.5)})})};
}

}  // namespace

extern const OpDef def{
    .name = "rsqrt",
    .doc = "1 / sqrt(x)",
    .tile = tile::rsqrt,
    .grad = gradient,
    .samples = unary_samples(0.2, 3),
};

}  // namespace espalier::ops::rsqrt

#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::sqrt {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const ValueId y = op.results[0];
  return {b.op("divide", {d[0], b.op("add", {y, y})})};
}

}  // namespace

extern const OpDef def{
    .name = "sqrt",
    .doc = "square root",
    .tile = tile::sqrt,
    .grad = gradient,
    .samples = unary_samples(0.2, 3),
};

}  // namespace espalier::ops::sqrt

#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::expm1 {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("multiply", {d[0], b.op("add", {op.results[0], number(b, 1)})})};
}

}  // namespace

extern const OpDef def{
    .name = "expm1",
    .doc = "e^x - 1, exact near 0",
    .tile = tile::expm1,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::expm1

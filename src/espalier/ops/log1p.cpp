#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::log1p {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("divide", {d[0], b.op("add", {op.operands[0], number(b, 1)})})};
}

}  // namespace

extern const OpDef def{
    .name = "log1p",
    .doc = "log(1 + x), exact near 0",
    .tile = tile::log1p,
    .grad = gradient,
    .samples = unary_samples(-0.7, 3),
};

}  // namespace espalier::ops::log1p

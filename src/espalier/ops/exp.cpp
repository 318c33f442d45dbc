#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::exp {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) { return {b.op("multiply", {d[0], op.results[0]})}; }

}  // namespace

extern const OpDef def{
    .name = "exp",
    .doc = "e^x",
    .tile = tile::exp,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::exp

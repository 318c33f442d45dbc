#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::negate {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op&, const std::vector<ValueId>& d) { return {b.op("negate", {d[0]})}; }

}  // namespace

extern const OpDef def{
    .name = "negate",
    .doc = "-x",
    .linearity = Linearity::kJoint,
    .tile = tile::negate,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::negate

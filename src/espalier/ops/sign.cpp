#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::sign {
namespace {

std::vector<ValueId> gradient(Builder&, const Op&, const std::vector<ValueId>&) { return {kNoValue}; }

}  // namespace

extern const OpDef def{
    .name = "sign",
    .doc = "-1, 0 or 1; constant almost everywhere, so without a gradient",
    .tile = tile::sign,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::sign

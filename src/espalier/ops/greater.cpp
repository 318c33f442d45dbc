#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::greater {
namespace {

std::vector<ValueId> gradient(Builder&, const Op&, const std::vector<ValueId>&) { return {kNoValue, kNoValue}; }

}  // namespace

extern const OpDef def{
    .name = "greater",
    .doc = "1 where a > b, else 0; constant almost everywhere, so without a gradient",
    .operand_count = 2,
    .tile = tile::greater,
    .grad = gradient,
    .samples = binary_samples(-2, 2),
};

}  // namespace espalier::ops::greater

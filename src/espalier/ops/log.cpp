#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::log {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) { return {b.op("divide", {d[0], op.operands[0]})}; }

}  // namespace

extern const OpDef def{
    .name = "log",
    .doc = "natural logarithm",
    .tile = tile::log,
    .grad = gradient,
    .samples = unary_samples(0.2, 3),
};

}  // namespace espalier::ops::log

#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::erf {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  constexpr double kSlopeAtZero = 1.1283791670955126;  // 2 / sqrt(pi)
  ValueId bell = b.op("exp", {b.op("negate", {b.op("square", {op.operands[0]})})});
  return {b.op("multiply", {d[0], b.op("multiply", {bell, number(b, kSlopeAtZero)})})};
}

}  // namespace

extern const OpDef def{
    .name = "erf",
    .doc = "the error function",
    .tile = tile::erf,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::erf

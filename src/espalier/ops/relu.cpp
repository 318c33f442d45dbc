#include "espalier/ops/elementwise.h"
#include "espalier/ops/tile_math.h"

namespace espalier::ops::relu {
namespace {

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("multiply", {d[0], b.op("greater", {op.results[0], number(b, 0)})})};
}

}  // namespace

extern const OpDef def{
    .name = "relu",
    .doc = "max(x, 0), NaN where x is; its gradient at 0 is 0",
    .tile = tile::relu,
    .grad = gradient,
    .samples = unary_samples(-2, 2),
};

}  // namespace espalier::ops::relu

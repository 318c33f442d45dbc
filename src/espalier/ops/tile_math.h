#pragma once
// Tile functions of the simple elementwise ops, in one source because a source costs seconds for each instruction set; an op's own file
// says everything else about it. Accuracy: at most 4 ulp (exp and its kin by Highway's math library), erf 1e-7 absolute. NaN in, NaN out.
#include "espalier/ir/attrs.h"

namespace espalier::ops::tile {

#define ESPALIER_TILE(NAME) void NAME(const Attrs& attrs, const float* const* in, float* const* out, int n);
ESPALIER_TILE(add)
ESPALIER_TILE(subtract)
ESPALIER_TILE(multiply)
ESPALIER_TILE(divide)
ESPALIER_TILE(maximum)
ESPALIER_TILE(minimum)
ESPALIER_TILE(greater)
ESPALIER_TILE(greater_equal)
ESPALIER_TILE(equal)
ESPALIER_TILE(select)
ESPALIER_TILE(negate)
ESPALIER_TILE(abs)
ESPALIER_TILE(sign)
ESPALIER_TILE(square)
ESPALIER_TILE(sqrt)
ESPALIER_TILE(rsqrt)
ESPALIER_TILE(exp)
ESPALIER_TILE(expm1)
ESPALIER_TILE(log)
ESPALIER_TILE(log1p)
ESPALIER_TILE(tanh)
ESPALIER_TILE(sigmoid)
ESPALIER_TILE(relu)
ESPALIER_TILE(erf)
#undef ESPALIER_TILE

}  // namespace espalier::ops::tile

#pragma once
// Tile functions of the optimizers' updates (see the op's own files for the formulas).
#include "espalier/ir/attrs.h"

namespace espalier::ops::tile {

void sgd_update(const Attrs& attrs, const float* const* in, float* const* out, int n);       // w, g, lr -> w
void momentum_update(const Attrs& attrs, const float* const* in, float* const* out, int n);  // w, m, g, lr -> w, m
void adam_update(const Attrs& attrs, const float* const* in, float* const* out, int n);      // w, m, v, g, rate, lr -> w, m, v

}  // namespace espalier::ops::tile

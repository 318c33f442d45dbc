#pragma once
// Tile functions of the optimizers' updates (see the op's own files for the formulas), and what these updates share with those that take
// in a product.
#include "espalier/ir/op_def.h"

namespace espalier::ops {

// The rules of momentum's updates: attribute "nesterov" is 0 or 1.
void require_nesterov_flag(const OpSignature& signature);

// For samples of Adam's updates, whose third operand it is: that of a real run is never negative.
void make_second_moment_positive(const OpSample& sample, const std::vector<void*>& operands);

namespace tile {

void sgd_update(const Attrs& attrs, const float* const* in, float* const* out, int n);       // w, g, lr -> w
void momentum_update(const Attrs& attrs, const float* const* in, float* const* out, int n);  // w, m, g, lr -> w, m
void adam_update(const Attrs& attrs, const float* const* in, float* const* out, int n);      // w, m, v, g, rate, lr -> w, m, v

}  // namespace tile
}  // namespace espalier::ops

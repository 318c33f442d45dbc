#pragma once
// Updates of a variable whose gradient is a matrix product: the gradient exists in small parts only, each used while it is in the cache.
#include "espalier/ir/op_def.h"

namespace espalier::ops {

// Operands: the variable and what the optimizer keeps of it, `state` tensors in all; the product's two, which op attribute "factors"
// names; then the update's scalars. Results: the state. What is summed over has to be whole: a variable is no pending sum.
FactorRule product_update_rule(const OpSignature& signature, size_t state);
double product_update_flops(const OpSignature& signature, size_t state);

// `update` takes the state, the gradient, the scalars.
Kernel product_update_kernel(const LocalOp& op, size_t state, TileFunction update);

}  // namespace espalier::ops

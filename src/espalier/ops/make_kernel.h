#pragma once
// The kernel of any op on one device: the op's own, or the shared one of elementwise ops and views.
#include "espalier/ir/op_def.h"

namespace espalier::ops {

// Prepared for the local shapes in `op`. A view whose result already lies in its operand's buffer moves nothing. Collectives have no
// kernel (the communicator runs them): calling it for one is an internal error.
Kernel make_kernel(const OpDef& def, const LocalOp& op);

}  // namespace espalier::ops

#pragma once
// What the collectives share: the op keeps the logical tensor and changes only how it lies on the mesh, which the partitioner states as the
// shardings of operand and result. They have no kernel: the communicator runs them.
#include "espalier/ir/op_def.h"

namespace espalier::ops {

// Every dim passes.
FactorRule identity_rule(const OpSignature& signature);

}  // namespace espalier::ops

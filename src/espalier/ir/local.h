#pragma once
// One device's view of a partitioned graph: the local part of each tensor, as kernels want it.
#include "espalier/ir/graph.h"

namespace espalier {

LocalTensor local_tensor(const Graph& graph, ValueId value, int64_t device);
// `threads`: cores the device may use inside one kernel. The result refers to op.attrs.
LocalOp local_op(const Graph& graph, const Op& op, int64_t device, int threads);
// Bytes of a value's part on a device.
int64_t local_bytes(const Graph& graph, ValueId value, int64_t device);

}  // namespace espalier

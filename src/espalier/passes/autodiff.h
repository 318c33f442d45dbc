#pragma once
// Reverse-mode differentiation: appends the backward ops to a graph. Every op's gradient stands in its own file (OpDef::grad); this pass
// only walks the graph backwards and adds up. First pass after tracing, on logical shapes, so that no gradient rule knows of devices.
// Source: Griewank and Walther, "Evaluating Derivatives", ch. 3 (reverse accumulation).
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier {

// d loss / d each of `wrt` (kNoValue where the loss does not depend on it). `loss` is a scalar f32. New ops carry Phase::kBackward and
// the scope of the op they differentiate. Errors: an op on the path that has no gradient, named with its scope.
std::vector<ValueId> differentiate(Graph& graph, ValueId loss, const std::vector<ValueId>& wrt);

}  // namespace espalier

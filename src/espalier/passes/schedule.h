#pragma once
// The order of execution. Ops come as traced; each is moved as late as its first consumer allows or, when it frees more bytes than it
// makes (an optimizer update that consumes a gradient), as early as its operands allow. An op that overwrites a variable's buffer stands
// after every other reader of that variable, so that the memory pass can update in place. Deterministic.
#include "espalier/ir/graph.h"

namespace espalier {

Graph schedule(const Graph& graph);

}  // namespace espalier

#pragma once
// Elementwise fusion: chains of elementwise ops on the same index space become one op `fused` whose body is a small Graph, run tile by
// tile in cache; an elementwise body on the result of an op that has an epilogue form (OpDef::with_epilogue) moves into that op. Runs after
// partitioning, when pending sums and collectives stand fast: it never moves work across a collective and never fuses values of different
// shardings. An op is fused into its consumer only where that does not compute it twice.
#include "espalier/ir/graph.h"

namespace espalier {

Graph fuse(const Graph& graph);

}  // namespace espalier

#pragma once
// Elementwise fusion: elementwise ops on one index space (equal result shapes and shardings, pending sums included) that feed each other
// become one op `fused` whose body is a small Graph, run tile by tile in cache; a body on the result of an op that has an epilogue form
// (OpDef::with_epilogue) moves into that op, so that a bias and an activation cost no pass over memory of their own. Runs after
// partitioning, when pending sums and collectives stand fast, and before scheduling, which orders what is left.
//
// Rules: nothing is computed twice, except constants, which every body gets a copy of. Values used outside a group become further results.
// A group never waits for itself: no path leaves it and comes back. An op that replaces state (an optimizer update) is no epilogue, since
// the product would be written over the old state. Not here: elementwise work inside a reduction, a body before a product.
#include "espalier/ir/graph.h"

namespace espalier {

Graph fuse(const Graph& graph);

}  // namespace espalier

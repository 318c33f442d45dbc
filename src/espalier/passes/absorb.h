#pragma once
// Two ops become one where OpDef::absorbing says so: an update takes in the product that makes its gradient, which then never exists. Runs
// after partitioning, when it is known that no collective stands between the two, and before fusion.
// Not absorbed: what somebody else reads too, what is an output, what still has a sum pending.
#include "espalier/ir/graph.h"

namespace espalier {

Graph absorb(const Graph& graph);

}  // namespace espalier

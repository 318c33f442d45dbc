#pragma once
// Removes what is computed and not used, and computes equal things once (same op, operands and attributes; random ops with equal streams
// too, since they are functions of position). An elementwise op repeats its smaller operands by itself, so a repeated copy made for it
// goes. All of it changes no bit of any result. Runs before layouts are decided, so that nothing dead attracts communication, and again
// after partitioning, where two consumers may have asked for the same collective.
#include "espalier/ir/graph.h"

namespace espalier {

Graph simplify(const Graph& graph);

}  // namespace espalier

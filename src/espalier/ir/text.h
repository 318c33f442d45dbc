#pragma once
// The text form of a Graph, which tests read and write. One line an input, op or output:
//
//   graph two_dense mesh {'data': 2, 'model': 4}
//   in %0 variable "sequential/dense/kernel" f32[32,64] (None, 'model')
//   in %1 data "x" f32[8,32] ('data', None)
//   %2:f32[8,64] = matmul(%1, %0) {factors="mk,kn->mn"} ('data', 'model') @forward "sequential/dense"
//   out variable "sequential/dense/kernel" %9
//
// Shardings, "mesh", phases other than forward and scopes stand only where they are not the default. parse(print(g)) prints the same.
#include <string>

#include "espalier/ir/graph.h"

namespace espalier {

std::string print(const Graph& graph);
// Errors (kUsage) name the line and column, and the op or value that is wrong.
Graph parse_graph(const std::string& text);

}  // namespace espalier

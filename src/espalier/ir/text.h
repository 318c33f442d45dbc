#pragma once
// The text form of a Graph, which tests read and write. One line an input, op or output:
//
//   graph two_dense mesh {'data': 2, 'model': 4}
//   in %0 variable "sequential/dense/kernel" f32[32,64] (None, 'model')
//   in %1 data "x" f32[8,32] ('data', None)
//   %2:f32[8,64] = matmul(%1, %0) {factors="mk,kn->mn"} ('data', 'model') "sequential/dense"
//   %3:f32[8,64] = all_gather(%2) ('data', None) @backward "sequential/dense" because "the loss needs whole rows"
//   out variable "sequential/dense/kernel" %9
//
// - Only what is not the default is printed: the first line when there is a name or a mesh; `devices ["cpu:3", "cpu:1"]` behind the mesh
//   when they are not cpu:0, cpu:1, ...; a sharding that is not replicated; a phase other than forward (@backward, @update).
// - Several results: `%2:f32[4], %3:f32[4] = op(...)`, shardings likewise. A named result: `%2 "name":f32[4]`. Pending sums:
//   `('data', None)+sum('model')`.
// - Attributes: `{count=3, rate=0.5, text="a\"b", dims=[0, 1], body={in %0 f32[4]; %1:f32[4] = exp(%0); out %1}}`. A float has a point,
//   an exponent or is inf or nan, and reads back bit-equal. The values of a body are its own.
// - ';' ends a statement as a new line does. `//` starts a comment. A result's type may be left out; if it is there it has to be right.
// - Values are numbered in order of appearance when printed, inputs first; when read they may have any word as name: %loss.
//
// parse_graph(print(g)) prints the same, and is g when g's inputs stand before its ops.
#include <string>

#include "espalier/ir/graph.h"

namespace espalier {

std::string print(const Graph& graph);

// Errors (kUsage) name line and column and what is wrong there. Refused, whatever the text: more than 2^56 elements in a tensor, more than
// 2^16 devices, bodies in bodies more than 8 deep. Time and memory are linear in the text's size.
Graph parse_graph(const std::string& text);

}  // namespace espalier

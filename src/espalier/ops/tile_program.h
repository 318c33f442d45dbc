#pragma once
// Elementwise kernels: a body of elementwise ops run tile by tile, so that what flows between its ops stays in the first-level cache. One
// loop serves single ops, `fused` and the epilogue of a matrix product. Operands are broadcast against the result's local shape: whole ones
// and rows are read in place, the rest is spread into a tile first; what does not change from tile to tile is computed once. Not here: what
// the ops compute (tile functions), which ops go together (passes/fuse).
#include <string>
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier::ops {

inline constexpr int kTileElements = 1024;  // 4 KiB a value: a body of eight live values fits a 32 KiB first-level cache

struct TileStep {
  TileFunction run = nullptr;
  Attrs attrs = {};
  std::vector<int> in = {}, out = {};  // numbers of values
};

// Values are numbered: the inputs first, then what the steps make.
struct TileProgram {
  int inputs = 0, values = 0;
  std::vector<TileStep> steps = {};
  std::vector<int> outputs = {};
  bool flushes_subnormals = false;  // as updates do
};

TileProgram tile_program(const OpDef& def, const Attrs& attrs, int operands);
TileProgram tile_program(const Graph& body);
TileProgram copy_program();  // one input, handed through: broadcasting by itself

// Errors, naming `where`: a body that takes another number of inputs, has no outputs, an op that is not elementwise, a value that is not
// f32.
void check_body(const Graph& body, size_t inputs, const std::string& where);

// The kernel of a program. `operands` broadcast against `result`, which all outputs have as their local shape. An output may be in the
// buffer of an operand of the same shape. Uses no scratch of the arena: the tiles lie on the stack.
Kernel tile_kernel(TileProgram program, const std::vector<Dims>& operands, const Dims& result, int threads);

}  // namespace espalier::ops

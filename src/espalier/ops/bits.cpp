#include "espalier/ops/bits.h"

namespace espalier::ops {

Kernel integer_kernel(const LocalOp& op, TileFunction run) {
  std::vector<Dims> shapes;
  TileStep step{.run = run, .attrs = *op.attrs};
  for (const LocalTensor& operand : op.operands) {
    step.in.push_back(static_cast<int>(shapes.size()));
    shapes.push_back(operand.shape);
  }
  const auto operands = static_cast<int>(shapes.size());
  step.out = {operands};
  TileProgram program{.inputs = operands, .values = operands + 1, .steps = {std::move(step)}, .outputs = {operands}};
  return tile_kernel(std::move(program), shapes, op.results[0].shape, op.threads);
}

}  // namespace espalier::ops

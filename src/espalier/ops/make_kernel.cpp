#include "espalier/ops/make_kernel.h"

#include <cstring>

#include "espalier/ops/tile_program.h"

namespace espalier::ops {

Kernel make_kernel(const OpDef& def, const LocalOp& op) {
  ESPALIER_ASSERT(!def.collective);
  if (def.cpu != nullptr) return def.cpu(op);
  if (def.view) {
    auto bytes = static_cast<size_t>(op.results[0].shape.volume() * size_of(op.results[0].dtype));
    return {.run = [bytes](const KernelCall& call) {
      if (bytes > 0 && call.results[0] != call.operands[0]) std::memcpy(call.results[0], call.operands[0], bytes);
    }};
  }
  ESPALIER_ASSERT(def.elementwise());
  std::vector<Dims> shapes;
  for (const LocalTensor& operand : op.operands) shapes.push_back(operand.shape);
  return tile_kernel(tile_program(def, *op.attrs, static_cast<int>(shapes.size())), shapes, op.results[0].shape, op.threads);
}

}  // namespace espalier::ops

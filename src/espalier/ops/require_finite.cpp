#include <cmath>
#include <cstring>

#include "espalier/ops/labels.h"

namespace espalier::ops::require_finite {
namespace {

// The value has any rank, the loss is a scalar.
FactorRule rule(const OpSignature& signature) {
  std::string letters = leading_letters(signature.operands[0].shape.rank());
  return parse_rule(letters + ",->" + letters, signature.shapes(), signature.where);
}

Kernel cpu(const LocalOp& op) {
  return {.run = [bytes = static_cast<size_t>(op.results[0].shape.volume()) * sizeof(float)](const KernelCall& call) {
    if (!std::isfinite(*call.operand<float>(1))) throw Error(ErrorKind::kDiverged, "the loss is not finite");
    if (bytes > 0) std::memmove(call.results[0], call.operands[0], bytes);  // the same buffer when it was taken over
  }};
}

double flops(const OpSignature&) { return 0; }

}  // namespace

// Stands between the loss and every update, so that by data dependency alone a step whose loss is not finite writes no state: the program
// ends here on every device, since all have the same loss.
extern const OpDef def{
    .name = "require_finite",
    .doc = "value, loss () -> value; ends the program with an error of its own kind when the loss is not finite",
    .rule = rule,
    .operand_count = 2,
    .flops = flops,
    .cpu = cpu,
    .in_place = {0},
    .samples = {{{{}, {}}}, {{{7}, {}}}, {{{3, 5}, {}}}, {{{0, 2}, {}}}},
};

}  // namespace espalier::ops::require_finite

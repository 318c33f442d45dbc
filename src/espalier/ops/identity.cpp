#include <fmt/format.h>

#include <algorithm>

#include "espalier/ops/random.h"

namespace espalier::ops::identity {
namespace {

FactorRule rule(const OpSignature& signature) {
  if (signature.attrs.integers("shape").size() != 2)
    usage_error(fmt::format("an identity has 2 dims, not {}", signature.attrs.integers("shape").size()), signature.where);
  return shape_rule(signature);
}

Kernel cpu(const LocalOp& op) {
  return {.run = [tensor = op.results[0], gain = static_cast<float>(op.attrs->number("gain"))](const KernelCall& call) {
    const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
    std::fill_n(call.result<float>(0), rows * columns, 0.0f);
    for (int64_t r = 0; r < rows; ++r)
      if (int64_t c = r + tensor.offset[0] - tensor.offset[1]; c >= 0 && c < columns) call.result<float>(0)[r * columns + c] = gain;
  }};
}

OpSample sample(int64_t rows, int64_t columns) { return {{}, {{"shape", std::vector<int64_t>{rows, columns}}, {"gain", 1.5}}}; }

}  // namespace

extern const OpDef def{
    .name = "identity",
    .doc = "`gain` on the diagonal of a matrix, 0 elsewhere",
    .rule = rule,
    .operand_count = 0,
    .attributes = {{"gain", AttrKind::kNumber}, {"shape", AttrKind::kIntegers}},
    .cpu = cpu,
    .random = true,
    .samples = {sample(7, 7), sample(3, 13), sample(13, 3), sample(0, 3)},
};

}  // namespace espalier::ops::identity

#include "espalier/ops/bits.h"

namespace espalier::ops::to_f32 {
namespace {

FactorRule rule(const OpSignature& signature) { return elementwise_rule(signature.shapes(), 1, signature.where); }

void convert(const Attrs&, const float* const* in, float* const* out, int n) {
  for (int i = 0; i < n; ++i) out[0][i] = static_cast<float>(as_integer(in[0][i]));
}

}  // namespace

extern const OpDef def{
    .name = "to_f32",
    .doc = "an integer as a float",
    .rule = rule,
    .operand_dtypes = {DType::kI32},
    .no_grad_operands = {0},
    .cpu = [](const LocalOp& op) { return integer_kernel(op, convert); },
    .in_place = {0},
    .samples = {{.operands = {{7, 13}}, .integer_limit = {1000}},
                {.operands = {{}}, .integer_limit = {5}},
                {.operands = {{0, 3}}, .integer_limit = {5}}},
};

}  // namespace espalier::ops::to_f32

#include "espalier/ops/bits.h"

namespace espalier::ops::equal_i32 {
namespace {

FactorRule rule(const OpSignature& signature) { return elementwise_rule(signature.shapes(), 1, signature.where); }

void compare(const Attrs&, const float* const* in, float* const* out, int n) {
  for (int i = 0; i < n; ++i) out[0][i] = as_integer(in[0][i]) == as_integer(in[1][i]) ? 1.0f : 0.0f;
}

}  // namespace

extern const OpDef def{
    .name = "equal_i32",
    .doc = "1 where two integers are equal, else 0",
    .rule = rule,
    .operand_dtypes = {DType::kI32, DType::kI32},
    .operand_count = 2,
    .no_grad_operands = {0, 1},
    .cpu = [](const LocalOp& op) { return integer_kernel(op, compare); },
    .in_place = {0, 1},
    .samples = {{.operands = {{7, 13}, {7, 13}}, .integer_limit = {3, 3}},
                {.operands = {{7, 1}, {5}}, .integer_limit = {3, 3}},
                {.operands = {{}, {4}}, .integer_limit = {2, 2}}},
};

}  // namespace espalier::ops::equal_i32

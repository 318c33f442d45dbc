#include <cmath>
#include <limits>

#include "espalier/ops/bits.h"

namespace espalier::ops::to_i32 {
namespace {

FactorRule rule(const OpSignature& signature) { return elementwise_rule(signature.shapes(), 1, signature.where); }

int32_t convert(float x) {
  constexpr float kBound = 2147483648.0f;  // 2^31, the first float past the range
  if (std::isnan(x)) return 0;
  if (x >= kBound) return std::numeric_limits<int32_t>::max();
  return x < -kBound ? std::numeric_limits<int32_t>::min() : static_cast<int32_t>(x);
}

void convert_tile(const Attrs&, const float* const* in, float* const* out, int n) {
  for (int i = 0; i < n; ++i) out[0][i] = as_bits(convert(in[0][i]));
}

}  // namespace

extern const OpDef def{
    .name = "to_i32",
    .doc = "a float rounded towards zero; the nearest integer there is when it is out of range, 0 for NaN",
    .rule = rule,
    .result_dtype = DType::kI32,
    .cpu = [](const LocalOp& op) { return integer_kernel(op, convert_tile); },
    .in_place = {0},
    .samples = {{{{7, 13}}, {}, -50, 50}, {{{}}, {}, -5e9, 5e9}, {{{0, 3}}}},
};

}  // namespace espalier::ops::to_i32

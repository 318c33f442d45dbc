#include "espalier/ops/random.h"

namespace espalier::ops::random_normal {
namespace {

FactorRule rule(const OpSignature& signature) {
  if (int64_t truncated = signature.attrs.integer("truncated"); truncated != 0 && truncated != 1)
    usage_error("'truncated' is neither 0 nor 1", signature.where);
  return shape_rule(signature);
}

Kernel cpu(const LocalOp& op) {
  const auto mean = static_cast<float>(op.attrs->number("mean")), deviation = static_cast<float>(op.attrs->number("stddev"));
  const double bound = op.attrs->integer("truncated") != 0 ? 2 : 0;
  return random_kernel(op, [=](const uint32_t* words, float* out, int n) { normal_of(words, mean, deviation, bound, out, n); });
}

OpSample sample(std::vector<int64_t> shape, int64_t truncated) {
  return {{},
          {{"shape", std::move(shape)},
           {"mean", 0.25},
           {"stddev", 2.0},
           {"truncated", truncated},
           {"seed", int64_t{1234567890123}},
           {"stream", int64_t{7}}}};
}

}  // namespace

extern const OpDef def{
    .name = "random_normal",
    .doc =
        "normal numbers, beyond two deviations drawn again when `truncated`; each a function of seed, stream and its index in the logical "
        "tensor",
    .rule = rule,
    .operand_count = 0,
    .attributes = {{"mean", AttrKind::kNumber},
                   {"seed", AttrKind::kInteger},
                   {"shape", AttrKind::kIntegers},
                   {"stddev", AttrKind::kNumber},
                   {"stream", AttrKind::kInteger},
                   {"truncated", AttrKind::kInteger}},
    .cpu = cpu,
    .random = true,
    .samples = {sample({7, 13}, 0), sample({2, 3, 5}, 1), sample({}, 0), sample({0, 3}, 1), sample({1100}, 1)},
};

}  // namespace espalier::ops::random_normal

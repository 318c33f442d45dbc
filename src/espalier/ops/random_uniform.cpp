#include "espalier/base/philox.h"
#include "espalier/ops/random.h"

namespace espalier::ops::random_uniform {
namespace {

Kernel cpu(const LocalOp& op) {
  const auto low = static_cast<float>(op.attrs->number("low"));
  const auto width = static_cast<float>(op.attrs->number("high") - op.attrs->number("low"));
  return random_kernel(op, [low, width](const uint32_t* words, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = low + width * to_uniform(words[i]);
  });
}

OpSample sample(std::vector<int64_t> shape) {
  return {{}, {{"shape", std::move(shape)}, {"low", -0.5}, {"high", 2.0}, {"seed", int64_t{1234567890123}}, {"stream", int64_t{7}}}};
}

}  // namespace

extern const OpDef def{
    .name = "random_uniform",
    .doc = "uniform numbers in [low, high), each a function of seed, stream and its index in the logical tensor",
    .rule = shape_rule,
    .operand_count = 0,
    .attributes = {{"high", AttrKind::kNumber},
                   {"low", AttrKind::kNumber},
                   {"seed", AttrKind::kInteger},
                   {"shape", AttrKind::kIntegers},
                   {"stream", AttrKind::kInteger}},
    .cpu = cpu,
    .random = true,
    .samples = {sample({7, 13}), sample({2, 3, 5}), sample({}), sample({0, 3}), sample({1100})},
};

}  // namespace espalier::ops::random_uniform

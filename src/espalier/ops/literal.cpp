#include <fmt/format.h>

#include <bit>

#include "espalier/ops/random.h"

namespace espalier::ops::literal {
namespace {

FactorRule rule(const OpSignature& signature) {
  FactorRule rule = shape_rule(signature);
  const auto bits = static_cast<int64_t>(signature.attrs.integers("bits").size());
  if (int64_t elements = rule.result_shape(0).volume(); bits != elements)
    usage_error(fmt::format("'bits' has {} numbers for {} elements", bits, elements), signature.where);
  return rule;
}

Kernel cpu(const LocalOp& op) {
  return {.run = [tensor = op.results[0], bits = op.attrs->integers("bits")](const KernelCall& call) {
    visit_global_runs(tensor, 0, tensor.shape.volume(), [&](int64_t offset, uint64_t index, int n) {
      for (int i = 0; i < n; ++i)
        call.result<float>(0)[offset + i] =
            std::bit_cast<float>(static_cast<int32_t>(bits[static_cast<size_t>(index) + static_cast<size_t>(i)]));
    });
  }};
}

OpSample sample(std::vector<int64_t> shape) {
  std::vector<int64_t> bits(static_cast<size_t>(Dims(shape).volume()));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = std::bit_cast<int32_t>(0.5f * static_cast<float>(i) - 1);
  return {{}, {{"shape", std::move(shape)}, {"bits", std::move(bits)}}};
}

}  // namespace

extern const OpDef def{
    .name = "literal",
    .doc = "given numbers: the bits of each float as an integer, row-major",
    .rule = rule,
    .operand_count = 0,
    .attributes = {{"bits", AttrKind::kIntegers}, {"shape", AttrKind::kIntegers}},
    .cpu = cpu,
    .random = true,  // like a random tensor: a function of attributes and position
    .samples = {sample({7, 3}), sample({13}), sample({2, 3, 5}), sample({0, 3})},
};

}  // namespace espalier::ops::literal

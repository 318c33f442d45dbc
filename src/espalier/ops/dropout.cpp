#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "espalier/ir/graph.h"
#include "espalier/ops/random.h"

namespace espalier::ops::dropout {
namespace {

FactorRule rule(const OpSignature& signature) {
  if (double rate = signature.attrs.number("rate"); !(rate >= 0 && rate <= 1))
    usage_error(fmt::format("'rate' is {}", rate), signature.where, "give a fraction from 0 to 1");
  std::string letters = std::string("abcdefgh").substr(0, static_cast<size_t>(signature.operands[0].shape.rank()));
  return parse_rule(letters + ",->" + letters, signature.shapes(), signature.where);
}

// The same elements are dropped from the gradient.
std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {b.op("dropout", {d[0], op.operands[1]}, op.attrs), kNoValue};
}

// Without a branch, which would be mispredicted half the time: the bits of what is dropped are masked away. x may be y.
void drop(const uint32_t* words, const float* x, float* y, int n, float scale, uint32_t dropped) {
  for (int i = 0; i < n; ++i) {
    const uint32_t kept = words[i] >> 8 >= dropped ? ~uint32_t{0} : 0;
    y[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(x[i] * scale) & kept);
  }
}

Kernel cpu(const LocalOp& op) {
  const double rate = op.attrs->number("rate");
  const auto scale = static_cast<float>(rate < 1 ? 1 / (1 - rate) : 0);
  const auto dropped = static_cast<uint32_t>(std::ceil(rate * (1 << 24)));  // of the 2^24 values of a word's upper 24 bits
  return {.run = [tensor = op.operands[0], key = random_key(*op.attrs), threads = op.threads, scale, dropped](const KernelCall& call) {
    RandomKey at_step = key;
    at_step.step = static_cast<uint32_t>(call.operand<int32_t>(1)[0]);
    const int64_t elements = tensor.shape.volume();
    parallel_for(threads, elements, 16 * elements, [&](int64_t begin, int64_t end) {  // 16: drawing against a simple op
      visit_global_runs(tensor, begin, end, [&](int64_t offset, uint64_t index, int n) {
        uint32_t words[kRandomBlock];
        random_words(at_step, index, n, words);
        drop(words, call.operand<float>(0) + offset, call.result<float>(0) + offset, n, scale, dropped);
      });
    });
  }};
}

double flops(const OpSignature& signature) { return 20 * static_cast<double>(signature.operands[0].shape.volume()); }

OpSample sample(Dims shape, double rate) {
  return {.operands = {shape, {}},
          .attrs = {{"rate", rate}, {"seed", int64_t{1234567890123}}, {"stream", int64_t{7}}},
          .integer_limit = {0, 100}};
}

}  // namespace

extern const OpDef def{
    .name = "dropout",
    .doc = "x, step -> 0 with probability `rate`, else x / (1 - rate), by seed, stream, step and the index in the logical tensor",
    .rule = rule,
    .linearity = Linearity::kEach,
    .linear_operands = {0},
    .operand_dtypes = {DType::kF32, DType::kI32},
    .operand_count = 2,
    .attributes = {{"rate", AttrKind::kNumber}, {"seed", AttrKind::kInteger}, {"stream", AttrKind::kInteger}},
    .grad = gradient,
    .no_grad_operands = {1},
    .flops = flops,
    .cpu = cpu,
    .in_place = {0},
    .samples = {sample({7, 13}, 0.5), sample({2, 3, 5}, 0.1), sample({}, 0), sample({0, 3}, 0.5), sample({3, 4}, 1)},
};

}  // namespace espalier::ops::dropout

#include "espalier/ops/product_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "espalier/base/subnormals.h"
#include "espalier/ops/contraction.h"
#include "espalier/ops/tile_program.h"

namespace espalier::ops {
namespace {

constexpr size_t kMostState = 3, kMostScalars = 2;

// Elements [first, first + count) of the state, a tile at a time.
class Update {
 public:
  Update(const Attrs& attrs, TileFunction update, size_t state, size_t scalars)
      : attrs_(attrs), update_(update), state_(state), scalars_(scalars) {
    ESPALIER_ASSERT(state <= kMostState && scalars <= kMostScalars);
  }

  void operator()(const KernelCall& call, int64_t first, int64_t count, const float* gradient) const {
    const FlushSubnormals flush;
    alignas(64) std::array<std::array<float, kTileElements>, kMostScalars> scalars;
    const float* in[kMostState + 1 + kMostScalars];
    float* out[kMostState];
    for (size_t i = 0; i < scalars_; ++i) {
      std::fill_n(scalars[i].data(), std::min<int64_t>(count, kTileElements), *call.operand<float>(static_cast<int>(state_ + 2 + i)));
      in[state_ + 1 + i] = scalars[i].data();
    }
    for (int64_t done = 0; done < count; done += kTileElements) {
      for (size_t i = 0; i < state_; ++i) {
        in[i] = call.operand<float>(static_cast<int>(i)) + first + done;
        out[i] = call.result<float>(static_cast<int>(i)) + first + done;
      }
      in[state_] = gradient + done;
      update_(attrs_, in, out, static_cast<int>(std::min<int64_t>(kTileElements, count - done)));
    }
  }

 private:
  Attrs attrs_;
  TileFunction update_;
  size_t state_, scalars_;
};

}  // namespace

FactorRule product_update_rule(const OpSignature& signature, size_t state) {
  const std::string& factors = signature.attrs.text("factors");
  parse_contraction(factors, signature.where);
  const std::vector<Dims> shapes = signature.shapes();
  FactorRule rule = with_whole_sums(parse_rule(factors, {shapes[state], shapes[state + 1]}, signature.where));
  const Dims result = rule.result_shape(0);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const bool fits = i < state ? shapes[i] == result : i < state + 2 || shapes[i].rank() == 0;
    if (!fits)
      usage_error(fmt::format("operand {} of shape {} does not fit the update of a variable by a product of shape {}", i,
                              to_string(shapes[i]), to_string(result)),
                  signature.where);
  }
  rule.operands.insert(rule.operands.begin(), state, rule.results[0]);
  rule.operands.resize(shapes.size());
  rule.results.resize(state, FactorTensor(rule.results[0]));
  return rule;
}

double product_update_flops(const OpSignature& signature, size_t state) {
  const FactorRule rule = product_update_rule(signature, state);
  return product_flops(rule) + static_cast<double>(state) * static_cast<double>(rule.result_shape(0).volume());
}

Kernel product_update_kernel(const LocalOp& op, size_t state, TileFunction update) {
  const MatmulPrimitive product = local_product(op, state, ProductMode::kHandOver);
  const Update apply(*op.attrs, update, state, op.operands.size() - state - 2);
  return {.run =
              [product, apply, state](const KernelCall& call) {
                const Consume consume = [&](int64_t first, int64_t count, const float* values) { apply(call, first, count, values); };
                product.run(
                    {.a = call.operands[state], .b = call.operands[state + 1], .c = nullptr, .scratch = call.scratch, .consume = &consume});
              },
          .scratch_bytes = product.scratch_bytes};
}

}  // namespace espalier::ops

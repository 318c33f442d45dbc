#include "espalier/nn/layers/dense.h"

#include <fmt/format.h>

#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

namespace {

// "mk,kn->mn", or with more dims before the last "abk,kn->abn".
std::string dense_factors(int rank) {
  std::string leading = rank == 2 ? "m" : std::string("abcdefgh").substr(0, static_cast<size_t>(rank - 1));
  return fmt::format("{0}k,kn->{0}n", leading);
}

class DenseDef final : public UnaryLayer {
 public:
  DenseDef(int64_t units, DenseConfig config)
      : UnaryLayer("Dense", config.name, config.trainable, config.activity_regularizer), units_(units), config_(std::move(config)) {
    if (units <= 0) usage_error(fmt::format("{} has units={}", label(), units), "", "give 1 or more");
  }

  std::vector<WeightSpec> weights_of(const Dims& input) const override {
    check(input);
    std::vector<WeightSpec> weights = {{"kernel", {input.back(), units_}, config_.kernel_initializer, config_.kernel_regularizer}};
    if (config_.use_bias) weights.push_back({"bias", {units_}, config_.bias_initializer, config_.bias_regularizer});
    return weights;
  }

  Dims output_shape(const Dims& input) const override {
    check(input);
    Dims shape = input;
    shape[shape.rank() - 1] = units_;
    return shape;
  }

  ValueId call_one(Trace& trace, ValueId x) const override {
    Formula y = Formula::op("matmul", {Formula::of(x), trace.weight("kernel")}, {{"factors", dense_factors(trace.shape(x).rank())}});
    if (config_.use_bias) y = y + trace.weight("bias");
    return apply_activation(trace.builder(), config_.activation, y.emit(trace.builder()));
  }

 private:
  void check(const Dims& input) const {
    if (input.empty())
      usage_error(fmt::format("{} needs samples of rank 1 or more, and its input has the shape {}", label(), batch_shape_text(input)), "",
                  "reshape the input to (1,)");
  }

  int64_t units_;
  DenseConfig config_;
};

}  // namespace

Dense::Dense(int64_t units, DenseConfig config) : Layer(std::make_shared<DenseDef>(units, std::move(config))) {}

}  // namespace espalier::nn

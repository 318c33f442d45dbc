#include "espalier/nn/layers/activation.h"

#include <fmt/format.h>

#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

namespace {

class ActivationDef final : public UnaryLayer {
 public:
  ActivationDef(std::string class_name, ActivationFunction activation, LayerConfig config)
      : UnaryLayer(std::move(class_name), std::move(config.name), config.trainable), activation_(std::move(activation)) {}
  ValueId call_one(Trace& trace, ValueId x) const override { return apply_activation(trace.builder(), activation_, x); }

 private:
  ActivationFunction activation_;
};

// keras.activations.relu: the negative part is taken of x before it is cut at the threshold.
class ReLUDef final : public UnaryLayer {
 public:
  explicit ReLUDef(ReLUConfig config) : UnaryLayer("ReLU", config.name), config_(std::move(config)) {
    for (double value : {config_.max_value.value_or(0), config_.negative_slope, config_.threshold})
      if (!(value >= 0)) usage_error(fmt::format("{} has the parameter {}", label(), value), "", "give 0 or more");
  }

  ValueId call_one(Trace& trace, ValueId id) const override {
    Formula x = Formula::of(id);
    double slope = config_.negative_slope, threshold = config_.threshold;
    if (slope != 0 && !config_.max_value && threshold == 0) return select(greater(0, x), x * slope, x).emit(trace.builder());
    Formula y = threshold != 0 ? select(greater(x, threshold), x, 0) : unary("relu", x);
    if (config_.max_value) y = minimum(y, *config_.max_value);
    if (slope != 0) y = y - unary("relu", threshold != 0 ? Formula(threshold) - x : -x) * slope;
    return y.emit(trace.builder());
  }

 private:
  ReLUConfig config_;
};

class SoftmaxDef final : public UnaryLayer {
 public:
  explicit SoftmaxDef(SoftmaxConfig config) : UnaryLayer("Softmax", std::move(config.name)), axis_(config.axis) {}

  Dims output_shape(const Dims& input) const override {
    sample_axis(axis_, input.rank() + 1, label());
    return input;
  }

  ValueId call_one(Trace& trace, ValueId x) const override {
    return trace.builder().op("softmax", {x}, {{"dim", int64_t{sample_axis(axis_, trace.shape(x).rank(), label())}}});
  }

 private:
  int64_t axis_;
};

ActivationFunction leaky_relu(double slope) {
  ActivationFunction function("leaky_relu");
  function.negative_slope = slope;
  return function;
}

ActivationFunction elu(double alpha) {
  ActivationFunction function("elu");
  function.alpha = alpha;
  return function;
}

std::shared_ptr<LayerDef> activation_def(std::string class_name, ActivationFunction function, LayerConfig config) {
  return std::make_shared<ActivationDef>(std::move(class_name), std::move(function), std::move(config));
}

}  // namespace

Activation::Activation(ActivationFunction function, LayerConfig config)
    : Layer(activation_def("Activation", std::move(function), std::move(config))) {}

ReLU::ReLU(ReLUConfig config) : Layer(std::make_shared<ReLUDef>(std::move(config))) {}

LeakyReLU::LeakyReLU(double negative_slope, LayerConfig config)
    : Layer(activation_def("LeakyReLU", leaky_relu(negative_slope), std::move(config))) {
  if (!(negative_slope >= 0)) usage_error(fmt::format("{} has negative_slope={}", def().label(), negative_slope), "", "give 0 or more");
}

ELU::ELU(double alpha, LayerConfig config) : Layer(activation_def("ELU", elu(alpha), std::move(config))) {}

Softmax::Softmax(SoftmaxConfig config) : Layer(std::make_shared<SoftmaxDef>(std::move(config))) {}

}  // namespace espalier::nn

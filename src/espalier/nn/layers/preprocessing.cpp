#include "espalier/nn/layers/preprocessing.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

namespace {

class RescalingDef final : public UnaryLayer {
 public:
  RescalingDef(double scale, RescalingConfig config)
      : UnaryLayer("Rescaling", std::move(config.name)), scale_(scale), offset_(config.offset) {}

  ValueId call_one(Trace& trace, ValueId id) const override {
    Formula y = Formula::of(id) * scale_;
    if (offset_ != 0) y = y + offset_;
    return y.emit(trace.builder());
  }

 private:
  double scale_, offset_;
};

// A tensor of the given numbers.
Formula literal(const std::vector<double>& values, const Dims& shape) {
  if (values.size() == 1) return values.front();
  std::vector<int64_t> bits;
  for (double value : values) bits.push_back(std::bit_cast<int32_t>(static_cast<float>(value)));
  return Formula::op("literal", {}, {{"shape", shape.vector()}, {"bits", bits}});
}

class NormalizationDef final : public UnaryLayer {
 public:
  explicit NormalizationDef(NormalizationConfig config) : UnaryLayer("Normalization", config.name), config_(std::move(config)) {
    if (config_.mean.has_value() != config_.variance.has_value())
      usage_error(fmt::format("{} has a mean or a variance without the other", label()), "", "give both or neither");
    if (config_.mean && config_.mean->size() != config_.variance->size())
      usage_error(fmt::format("{} has {} means and {} variances", label(), config_.mean->size(), config_.variance->size()));
  }

  std::vector<WeightSpec> weights_of(const Dims& input) const override {
    Dims shape;
    for (int64_t dim : kept(input.rank() + 1)) shape.push_back(input[static_cast<int>(dim) - 1]);
    if (config_.mean) {
      check_count(shape);
      return {};
    }
    return {{.name = "mean", .shape = shape, .trainable = false},
            {.name = "variance", .shape = shape, .initializer = Ones(), .trainable = false},
            {.name = "count", .shape = {}, .trainable = false, .dtype = DType::kI32}};
  }

  ValueId call_one(Trace& trace, ValueId id) const override {
    Dims shape = trace.shape(id), behind;  // sizes of the kept axes, 1 elsewhere, from the first kept axis on
    Dims dims = kept(shape.rank());
    for (int dim = dims.empty() ? shape.rank() : static_cast<int>(dims[0]); dim < shape.rank(); ++dim)
      behind.push_back(std::find(dims.begin(), dims.end(), dim) != dims.end() ? shape[dim] : 1);
    Formula x = Formula::of(id), mean = 0, deviation = 1;
    if (config_.mean) {
      std::vector<double> deviations = *config_.variance;
      for (double& value : deviations) value = std::max(std::sqrt(value), kEpsilon);
      mean = literal(*config_.mean, behind);
      deviation = literal(deviations, behind);
    } else {
      auto aligned = [&](const Formula& weight) { return behind.rank() == dims.rank() ? weight : reshape(weight, behind); };
      mean = aligned(trace.weight("mean"));
      deviation = maximum(unary("sqrt", aligned(trace.weight("variance"))), kEpsilon);
    }
    return (config_.invert ? mean + x * deviation : (x - mean) / deviation).emit(trace.builder());
  }

 private:
  Dims kept(int rank_with_batch) const { return config_.axis ? sample_axes(*config_.axis, rank_with_batch, label()) : Dims(); }

  void check_count(const Dims& shape) const {
    auto count = static_cast<int64_t>(config_.mean->size());
    if (count != 1 && count != shape.volume())
      usage_error(fmt::format("{} has {} means", label(), count), "",
                  fmt::format("its axes have {} indices: give one mean for each, or one", shape.volume()));
  }

  NormalizationConfig config_;
};

}  // namespace

Rescaling::Rescaling(double scale, RescalingConfig config) : Layer(std::make_shared<RescalingDef>(scale, std::move(config))) {}
Normalization::Normalization(NormalizationConfig config) : Layer(std::make_shared<NormalizationDef>(std::move(config))) {}

}  // namespace espalier::nn

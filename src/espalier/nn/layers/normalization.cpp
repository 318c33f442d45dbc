#include "espalier/nn/layers/normalization.h"

#include <fmt/format.h>

#include <functional>

#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

namespace {

void check_epsilon(const LayerDef& layer, double epsilon) {
  if (!(epsilon > 0)) usage_error(fmt::format("{} has epsilon={}", layer.label(), epsilon), "", "give a number above 0");
}

struct Moments {
  Formula mean, variance;
};

// Mean and (biased) variance over `dims`, which hold `count` elements.
Moments moments(const Formula& x, const Dims& dims, int64_t count, Keep keep, const std::function<Formula(Formula)>& aligned) {
  auto n = static_cast<double>(count);
  Formula mean = sum(x, dims, keep) / n;
  return {mean, sum(square(x - aligned(mean)), dims, keep) / n};
}

class BatchNormalizationDef final : public UnaryLayer {
 public:
  explicit BatchNormalizationDef(BatchNormalizationConfig config)
      : UnaryLayer("BatchNormalization", config.name, config.trainable), config_(std::move(config)) {
    check_epsilon(*this, config_.epsilon);
    if (!(config_.momentum >= 0 && config_.momentum <= 1))
      usage_error(fmt::format("{} has momentum={}", label(), config_.momentum), "", "give a number from 0 to 1");
  }

  std::vector<WeightSpec> weights_of(const Dims& input) const override {
    Dims shape = {input[sample_axis(config_.axis, input.rank() + 1, label()) - 1]};
    std::vector<WeightSpec> weights;
    if (config_.scale) weights.push_back({"gamma", shape, config_.gamma_initializer, config_.gamma_regularizer});
    if (config_.center) weights.push_back({"beta", shape, config_.beta_initializer, config_.beta_regularizer});
    weights.push_back({.name = "moving_mean", .shape = shape, .initializer = config_.moving_mean_initializer, .trainable = false});
    weights.push_back({.name = "moving_variance", .shape = shape, .initializer = config_.moving_variance_initializer, .trainable = false});
    return weights;
  }

  ValueId call_one(Trace& trace, ValueId id) const override {
    Dims shape = trace.shape(id);
    int axis = sample_axis(config_.axis, shape.rank(), label());
    Dims behind = {shape[axis]};  // (channels, 1, ...): lines up with the axis
    for (int dim = axis + 1; dim < shape.rank(); ++dim) behind.push_back(1);
    auto aligned = [&](const Formula& channels) { return behind.rank() == 1 ? channels : reshape(channels, behind); };

    Formula x = Formula::of(id);
    bool of_batch = trace.mode() == Mode::kTraining && !trace.frozen();
    Moments used =
        of_batch ? batch_moments(trace, x, shape, axis, aligned) : Moments{trace.weight("moving_mean"), trace.weight("moving_variance")};
    Formula inv = unary("rsqrt", used.variance + config_.epsilon);
    if (config_.scale) inv = inv * trace.weight("gamma");
    Formula shift = -used.mean * inv;
    if (config_.center) shift = shift + trace.weight("beta");
    return (x * aligned(inv) + aligned(shift)).emit(trace.builder());
  }

 private:
  Moments batch_moments(Trace& trace, const Formula& x, const Dims& shape, int axis, const std::function<Formula(Formula)>& aligned) const {
    Dims dims;
    for (int dim = 0; dim < shape.rank(); ++dim)
      if (dim != axis) dims.push_back(dim);
    Moments batch = moments(x, dims, shape.volume() / shape[axis], Keep::kNo, aligned);
    batch.variance.emit(trace.builder());  // before the updates, which are of another phase
    double kept = config_.momentum;
    trace.update_weight("moving_mean", trace.weight("moving_mean") * kept + batch.mean * (1 - kept));
    trace.update_weight("moving_variance", trace.weight("moving_variance") * kept + batch.variance * (1 - kept));
    return batch;
  }

  BatchNormalizationConfig config_;
};

class LayerNormalizationDef final : public UnaryLayer {
 public:
  explicit LayerNormalizationDef(LayerNormalizationConfig config)
      : UnaryLayer("LayerNormalization", config.name, config.trainable), config_(std::move(config)) {
    check_epsilon(*this, config_.epsilon);
    if (config_.axis.empty()) usage_error(fmt::format("{} has no axis", label()), "", "name one, -1 is the last");
  }

  std::vector<WeightSpec> weights_of(const Dims& input) const override {
    Dims shape;
    for (int64_t dim : axes(input.rank() + 1)) shape.push_back(input[static_cast<int>(dim) - 1]);
    std::vector<WeightSpec> weights;
    if (config_.scale) weights.push_back({"gamma", shape, config_.gamma_initializer, config_.gamma_regularizer});
    if (config_.center) weights.push_back({"beta", shape, config_.beta_initializer, config_.beta_regularizer});
    return weights;
  }

  ValueId call_one(Trace& trace, ValueId id) const override {
    Dims shape = trace.shape(id), dims = axes(shape.rank());
    Dims weight_shape = Dims::filled(shape.rank(), 1);
    int64_t count = 1;
    for (int64_t dim : dims) {
      weight_shape[static_cast<int>(dim)] = shape[static_cast<int>(dim)];
      count *= shape[static_cast<int>(dim)];
    }
    bool lines_up = dims == Dims{shape.rank() - 1};
    auto weight = [&](const char* name) { return lines_up ? trace.weight(name) : reshape(trace.weight(name), weight_shape); };

    Formula x = Formula::of(id);
    Moments sample = moments(x, dims, count, Keep::kYes, [](Formula mean) { return mean; });
    Formula inv = unary("rsqrt", sample.variance + config_.epsilon);
    if (config_.scale) inv = inv * weight("gamma");
    Formula shift = -sample.mean * inv;
    if (config_.center) shift = shift + weight("beta");
    return (x * inv + shift).emit(trace.builder());
  }

 private:
  Dims axes(int rank_with_batch) const { return sample_axes(config_.axis, rank_with_batch, label()); }

  LayerNormalizationConfig config_;
};

}  // namespace

BatchNormalization::BatchNormalization(BatchNormalizationConfig config)
    : Layer(std::make_shared<BatchNormalizationDef>(std::move(config))) {}
LayerNormalization::LayerNormalization(LayerNormalizationConfig config)
    : Layer(std::make_shared<LayerNormalizationDef>(std::move(config))) {}

}  // namespace espalier::nn

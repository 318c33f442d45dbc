#include "espalier/nn/losses.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "espalier/base/nearest.h"

namespace espalier::nn {

namespace {

const std::map<std::string, Loss::Kind>& known_losses() {
  using Kind = Loss::Kind;
  static const std::map<std::string, Kind> table = {
      {"sparse_categorical_crossentropy", Kind::kSparseCategoricalCrossentropy},
      {"SparseCategoricalCrossentropy", Kind::kSparseCategoricalCrossentropy},
      {"categorical_crossentropy", Kind::kCategoricalCrossentropy},
      {"CategoricalCrossentropy", Kind::kCategoricalCrossentropy},
      {"binary_crossentropy", Kind::kBinaryCrossentropy},
      {"BinaryCrossentropy", Kind::kBinaryCrossentropy},
      {"bce", Kind::kBinaryCrossentropy},
      {"BCE", Kind::kBinaryCrossentropy},
      {"mean_squared_error", Kind::kMeanSquaredError},
      {"MeanSquaredError", Kind::kMeanSquaredError},
      {"mse", Kind::kMeanSquaredError},
      {"MSE", Kind::kMeanSquaredError},
      {"mean_absolute_error", Kind::kMeanAbsoluteError},
      {"MeanAbsoluteError", Kind::kMeanAbsoluteError},
      {"mae", Kind::kMeanAbsoluteError},
      {"MAE", Kind::kMeanAbsoluteError},
      {"huber", Kind::kHuber},
      {"Huber", Kind::kHuber},
      {"huber_loss", Kind::kHuber},
  };
  return table;
}

Loss::Kind loss_kind(const std::string& name) {
  auto found = known_losses().find(name);
  if (found != known_losses().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, kind] : known_losses()) names.push_back(known);
  usage_error(fmt::format("there is no loss '{}'", name), "", suggest(name, names));
}

const char* default_name(Loss::Kind kind) {
  switch (kind) {
    case Loss::Kind::kSparseCategoricalCrossentropy:
      return "sparse_categorical_crossentropy";
    case Loss::Kind::kCategoricalCrossentropy:
      return "categorical_crossentropy";
    case Loss::Kind::kBinaryCrossentropy:
      return "binary_crossentropy";
    case Loss::Kind::kMeanSquaredError:
      return "mean_squared_error";
    case Loss::Kind::kMeanAbsoluteError:
      return "mean_absolute_error";
    case Loss::Kind::kHuber:
      return "huber_loss";
  }
  return "";
}

void configure(Loss& loss, const CrossentropyConfig& config) {
  if (!(config.label_smoothing >= 0 && config.label_smoothing <= 1))
    usage_error(fmt::format("label_smoothing is {}", config.label_smoothing), fmt::format("loss '{}'", loss.name),
                "give a number from 0 to 1");
  loss.from_logits = config.from_logits;
  loss.label_smoothing = config.label_smoothing;
  loss.reduction = config.reduction;
}

}  // namespace

Loss::Loss(const char* given) : Loss(std::string(given)) {}
Loss::Loss(const std::string& given) : kind(loss_kind(given)), name(given) {}
Loss::Loss(Kind given) : kind(given), name(default_name(given)) {}

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(CrossentropyConfig config) : Loss(Kind::kSparseCategoricalCrossentropy) {
  if (config.label_smoothing != 0)
    usage_error("label_smoothing is given", fmt::format("loss '{}'", name),
                "labels of one class are smoothed by 'categorical_crossentropy'");
  configure(*this, config);
}
CategoricalCrossentropy::CategoricalCrossentropy(CrossentropyConfig config) : Loss(Kind::kCategoricalCrossentropy) {
  configure(*this, config);
}
BinaryCrossentropy::BinaryCrossentropy(CrossentropyConfig config) : Loss(Kind::kBinaryCrossentropy) { configure(*this, config); }
MeanSquaredError::MeanSquaredError(LossReduction r) : Loss(Kind::kMeanSquaredError) { reduction = r; }
MeanAbsoluteError::MeanAbsoluteError(LossReduction r) : Loss(Kind::kMeanAbsoluteError) { reduction = r; }
Huber::Huber(double d, LossReduction r) : Loss(Kind::kHuber) {
  delta = d;
  reduction = r;
}

Prediction prediction_of(const Graph& graph, ValueId value) {
  Prediction prediction{.value = value};
  int32_t producer = graph.value(value).op;
  if (producer < 0) return prediction;
  const Op& op = graph.ops[static_cast<size_t>(producer)];
  if (op.def->name == "sigmoid") prediction.sigmoid_logits = op.operands[0];
  if (op.def->name == "softmax" && op.attrs.integer("dim") == graph.type(value).shape.rank() - 1)
    prediction.softmax_logits = op.operands[0];
  return prediction;
}

TensorType target_type(const Loss& loss, const Dims& prediction, const std::string& where) {
  if (prediction.rank() < 2)
    usage_error(fmt::format("loss '{}' needs samples of rank 1 or more", loss.name), where, "end the model in a layer that gives (1,)");
  if (loss.kind != Loss::Kind::kSparseCategoricalCrossentropy) return {DType::kF32, prediction};
  return {DType::kI32, Dims(prediction.begin(), prediction.end() - 1)};
}

namespace {

Dims last_dim(const Dims& shape) { return {shape.rank() - 1}; }

Formula log_softmax(const Formula& x, const Dims& shape) { return x - logsumexp(x, last_dim(shape), Keep::kYes); }

// Probabilities that come from no softmax: scaled to sum 1, then clipped.
Formula log_probabilities(const Formula& x, const Dims& shape) {
  return unary("log", clip(x / sum(x, last_dim(shape), Keep::kYes), kEpsilon, 1 - kEpsilon));
}

std::optional<ValueId> logits_of(const Loss& loss, const Prediction& prediction, const std::optional<ValueId>& before_activation) {
  return loss.from_logits ? std::optional(prediction.value) : before_activation;
}

// One value a label.
Formula sparse_crossentropy(const Loss& loss, const Prediction& prediction, ValueId target, const Dims& shape) {
  if (auto logits = logits_of(loss, prediction, prediction.softmax_logits)) {
    Formula x = Formula::of(*logits);
    return Formula::op("softmax_cross_entropy", {x, logsumexp(x, last_dim(shape)), Formula::of(target)});
  }
  return -Formula::op("take_label", {log_probabilities(Formula::of(prediction.value), shape), Formula::of(target)});
}

// One value an element; a sample's loss is their sum.
Formula categorical_crossentropy(const Loss& loss, const Prediction& prediction, const Formula& target, const Dims& shape) {
  double smoothing = loss.label_smoothing;
  Formula smooth = smoothing == 0 ? target : target * (1 - smoothing) + smoothing / static_cast<double>(shape.back());
  auto logits = logits_of(loss, prediction, prediction.softmax_logits);
  return -(smooth * (logits ? log_softmax(Formula::of(*logits), shape) : log_probabilities(Formula::of(prediction.value), shape)));
}

Formula binary_crossentropy(const Loss& loss, const Prediction& prediction, const Formula& target) {
  double smoothing = loss.label_smoothing;
  Formula smooth = smoothing == 0 ? target : target * (1 - smoothing) + 0.5 * smoothing;
  if (auto logits = logits_of(loss, prediction, prediction.sigmoid_logits)) {  // softplus(x) - t x
    Formula x = Formula::of(*logits);
    return maximum(x, 0) + unary("log1p", unary("exp", -unary("abs", x))) - smooth * x;
  }
  Formula p = clip(Formula::of(prediction.value), kEpsilon, 1 - kEpsilon);
  return -(smooth * unary("log", p) + (1 - smooth) * unary("log", 1 - p));
}

Formula huber(const Formula& error, double delta) {
  Formula size = unary("abs", error);
  return select(greater(size, delta), size * delta - 0.5 * delta * delta, square(error) * 0.5);
}

Formula elements(const Loss& loss, const Prediction& prediction, ValueId target, const Dims& shape) {
  Formula t = Formula::of(target), p = Formula::of(prediction.value);
  switch (loss.kind) {
    case Loss::Kind::kSparseCategoricalCrossentropy:
      return sparse_crossentropy(loss, prediction, target, shape);
    case Loss::Kind::kCategoricalCrossentropy:
      return categorical_crossentropy(loss, prediction, t, shape);
    case Loss::Kind::kBinaryCrossentropy:
      return binary_crossentropy(loss, prediction, t);
    case Loss::Kind::kMeanSquaredError:
      return square(t - p);
    case Loss::Kind::kMeanAbsoluteError:
      return unary("abs", t - p);
    case Loss::Kind::kHuber:
      return huber(p - t, loss.delta);
  }
  return p;
}

}  // namespace

LossSum loss_sum(Builder& builder, const Loss& loss, const Prediction& prediction, ValueId target) {
  const Dims shape = builder.shape(prediction.value);
  ValueId each = elements(loss, prediction, target, shape).emit(builder);
  bool categorical = loss.kind == Loss::Kind::kSparseCategoricalCrossentropy || loss.kind == Loss::Kind::kCategoricalCrossentropy;
  return {.sum = sum(Formula::of(each), all_dims(builder.shape(each).rank())).emit(builder),
          .per_value = categorical ? 1 : shape.back(),
          .count = categorical ? shape.volume() / shape.back() : shape.volume()};
}

ValueId loss_value(Builder& builder, const Loss& loss, const Prediction& prediction, ValueId target) {
  LossSum total = loss_sum(builder, loss, prediction, target);
  auto divisor = static_cast<double>(loss.reduction == LossReduction::kSum ? total.per_value : total.count);
  return divisor == 1 ? total.sum : (Formula::of(total.sum) / divisor).emit(builder);
}

}  // namespace espalier::nn

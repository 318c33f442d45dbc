#include "espalier/nn/metrics.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "espalier/base/nearest.h"

namespace espalier::nn {

namespace {

const std::map<std::string, Metric::Kind>& known_metrics() {
  using Kind = Metric::Kind;
  static const std::map<std::string, Kind> table = {
      {"accuracy", Kind::kAccuracy},
      {"Accuracy", Kind::kAccuracy},
      {"acc", Kind::kAccuracy},
      {"binary_accuracy", Kind::kBinaryAccuracy},
      {"BinaryAccuracy", Kind::kBinaryAccuracy},
      {"categorical_accuracy", Kind::kCategoricalAccuracy},
      {"CategoricalAccuracy", Kind::kCategoricalAccuracy},
      {"sparse_categorical_accuracy", Kind::kSparseCategoricalAccuracy},
      {"SparseCategoricalAccuracy", Kind::kSparseCategoricalAccuracy},
      {"mse", Kind::kLoss},
      {"MSE", Kind::kLoss},
      {"mean_squared_error", Kind::kLoss},
      {"MeanSquaredError", Kind::kLoss},
      {"mae", Kind::kLoss},
      {"MAE", Kind::kLoss},
      {"mean_absolute_error", Kind::kLoss},
      {"MeanAbsoluteError", Kind::kLoss},
      {"huber", Kind::kLoss},
      {"binary_crossentropy", Kind::kLoss},
      {"BinaryCrossentropy", Kind::kLoss},
      {"bce", Kind::kLoss},
      {"BCE", Kind::kLoss},
      {"categorical_crossentropy", Kind::kLoss},
      {"CategoricalCrossentropy", Kind::kLoss},
      {"sparse_categorical_crossentropy", Kind::kLoss},
      {"SparseCategoricalCrossentropy", Kind::kLoss},
  };
  return table;
}

Metric::Kind metric_kind(const std::string& name) {
  auto found = known_metrics().find(name);
  if (found != known_metrics().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, kind] : known_metrics()) names.push_back(known);
  usage_error(fmt::format("there is no metric '{}'", name), "", suggest(name, names));
}

// The largest of the last dim. Of logits where there are some: the order is the same, and no softmax has to be computed for it.
ValueId predicted_class(Builder& builder, const Prediction& prediction) {
  return builder.op("argmax", {prediction.softmax_logits.value_or(prediction.value)});
}

void check_target(Builder& builder, const Metric& metric, ValueId target, DType wanted, const std::string& where) {
  if (builder.graph().type(target).dtype == wanted) return;
  usage_error(
      fmt::format("metric '{}' compares with {}", metric.name, wanted == DType::kI32 ? "class numbers" : "numbers of the output's shape"),
      where, wanted == DType::kI32 ? "use 'categorical_accuracy' for this loss" : "use a metric of classes for this loss");
}

ValueId matches(Builder& builder, const Metric& metric, const Prediction& prediction, ValueId target) {
  switch (metric.kind) {
    case Metric::Kind::kBinaryAccuracy:
      return Formula::op("equal", {greater(Formula::of(prediction.value), metric.threshold), Formula::of(target)}).emit(builder);
    case Metric::Kind::kCategoricalAccuracy: {
      ValueId predicted = predicted_class(builder, prediction);
      return builder.op("equal_i32", {predicted, builder.op("argmax", {target})});
    }
    default:
      return builder.op("equal_i32", {predicted_class(builder, prediction), target});
  }
}

}  // namespace

Metric::Metric(const char* given) : Metric(std::string(given)) {}

Metric::Metric(const std::string& given) : kind(metric_kind(given)), name(given) {
  if (kind == Kind::kLoss) loss = Loss(given);
}

Metric resolved(const Metric& metric, const Dims& prediction, DType target) {
  if (metric.kind != Metric::Kind::kAccuracy) return metric;
  Metric chosen = metric;
  chosen.kind = target == DType::kI32    ? Metric::Kind::kSparseCategoricalAccuracy
                : prediction.back() == 1 ? Metric::Kind::kBinaryAccuracy
                                         : Metric::Kind::kCategoricalAccuracy;
  return chosen;
}

MetricSum metric_sum(Builder& builder, const Metric& given, const Prediction& prediction, ValueId target, const std::string& where) {
  const Dims shape = builder.shape(prediction.value);
  Metric metric = resolved(given, shape, builder.graph().type(target).dtype);
  if (metric.kind == Metric::Kind::kLoss) {
    check_target(builder, metric, target, target_type(*metric.loss, shape, where).dtype, where);
    LossSum total = loss_sum(builder, *metric.loss, prediction, target);
    return {total.sum, total.count};
  }
  check_target(builder, metric, target, metric.kind == Metric::Kind::kSparseCategoricalAccuracy ? DType::kI32 : DType::kF32, where);
  ValueId hits = matches(builder, metric, prediction, target);
  const Dims hit_shape = builder.shape(hits);
  return {sum(Formula::of(hits), all_dims(hit_shape.rank())).emit(builder), hit_shape.volume()};
}

}  // namespace espalier::nn

#pragma once
// Keras' metrics: means that are kept as a sum and a count, so that they are exact for any mesh and any last batch.
#include <optional>
#include <string>

#include "espalier/nn/losses.h"

namespace espalier::nn {

struct Metric {
  enum class Kind {
    kAccuracy,  // resolved by the output and its loss, as Keras does
    kBinaryAccuracy,
    kCategoricalAccuracy,
    kSparseCategoricalAccuracy,
    kLoss,  // the mean of a loss: mse, mae, sparse_categorical_crossentropy, ...
  };

  // By Keras' names: "accuracy", "acc", "mse", "BinaryAccuracy", and every loss. The name given is the one in the history.
  Metric(const char* name);         // NOLINT
  Metric(const std::string& name);  // NOLINT
  Metric(Kind kind, std::string name) : kind(kind), name(std::move(name)) {}
  explicit Metric(Loss loss) : kind(Kind::kLoss), name(loss.name), loss(std::move(loss)) {}

  Kind kind;
  std::string name;
  double threshold = 0.5;         // binary accuracy
  std::optional<Loss> loss = {};  // kLoss
};

// The metric that `accuracy` means: binary when an output has one number, sparse when the targets are classes, else categorical.
Metric resolved(const Metric& metric, const Dims& prediction, DType target);

struct MetricSum {
  ValueId sum = kNoValue;
  int64_t count = 1;
};
// Errors, naming `where`: a metric of classes where targets are not, or the other way round.
MetricSum metric_sum(Builder& builder, const Metric& metric, const Prediction& prediction, ValueId target, const std::string& where);

}  // namespace espalier::nn

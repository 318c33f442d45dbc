#pragma once
// Keras' losses. Each is a sum over elements, divided once by a number the host knows, so that a sum that is pending over devices passes
// through. A softmax or sigmoid directly before a cross-entropy is skipped and the loss computed from its logits, which is exact where the
// probabilities round to 0 or 1; without one, Keras clips probabilities to 1e-7 .. 1 - 1e-7.
// Source: keras/src/losses/losses.py, keras/src/backend/jax/nn.py (Keras 3.15).
#include <optional>
#include <string>

#include "espalier/nn/formula.h"

namespace espalier::nn {

enum class LossReduction { kSumOverBatchSize, kSum };

struct Loss {
  enum class Kind {
    kSparseCategoricalCrossentropy,
    kCategoricalCrossentropy,
    kBinaryCrossentropy,
    kMeanSquaredError,
    kMeanAbsoluteError,
    kHuber,
  };

  // By Keras' names: "sparse_categorical_crossentropy", "mse", "MSE", "MeanSquaredError", ... An unknown one is an Error with the nearest.
  Loss(const char* name);         // NOLINT
  Loss(const std::string& name);  // NOLINT
  explicit Loss(Kind kind);

  Kind kind;
  std::string name;  // as given, else Keras' default
  bool from_logits = false;
  double label_smoothing = 0;  // categorical and binary cross-entropy
  double delta = 1;            // Huber
  LossReduction reduction = LossReduction::kSumOverBatchSize;
};

struct CrossentropyConfig {
  bool from_logits = false;
  double label_smoothing = 0;
  LossReduction reduction = LossReduction::kSumOverBatchSize;
};
struct SparseCategoricalCrossentropy : Loss {
  explicit SparseCategoricalCrossentropy(CrossentropyConfig config = {});
};
struct CategoricalCrossentropy : Loss {
  explicit CategoricalCrossentropy(CrossentropyConfig config = {});
};
struct BinaryCrossentropy : Loss {
  explicit BinaryCrossentropy(CrossentropyConfig config = {});
};
struct MeanSquaredError : Loss {
  explicit MeanSquaredError(LossReduction reduction = LossReduction::kSumOverBatchSize);
};
struct MeanAbsoluteError : Loss {
  explicit MeanAbsoluteError(LossReduction reduction = LossReduction::kSumOverBatchSize);
};
struct Huber : Loss {
  explicit Huber(double delta = 1, LossReduction reduction = LossReduction::kSumOverBatchSize);
};

// An output of the model, and what stood before its last activation when that is a softmax over the last dim or a sigmoid.
struct Prediction {
  ValueId value = kNoValue;
  std::optional<ValueId> softmax_logits = {}, sigmoid_logits = {};
};
Prediction prediction_of(const Graph& graph, ValueId value);

// The target a loss compares with: i32 classes of the prediction's shape without its last dim, or f32 of the prediction's shape.
// Error, naming `where`: a prediction of rank 0 per sample.
TensorType target_type(const Loss& loss, const Dims& prediction, const std::string& where);

// `sum` over all elements of the loss. Keras' value is sum / per_value for reduction `sum`, sum / count otherwise.
struct LossSum {
  ValueId sum = kNoValue;
  int64_t per_value = 1;  // elements averaged within one value of the loss: the last dim of a squared error
  int64_t count = 1;      // elements in all
};
LossSum loss_sum(Builder& builder, const Loss& loss, const Prediction& prediction, ValueId target);
ValueId loss_value(Builder& builder, const Loss& loss, const Prediction& prediction, ValueId target);  // a scalar

}  // namespace espalier::nn

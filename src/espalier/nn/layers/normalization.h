#pragma once
// BatchNormalization and LayerNormalization. Formulas as in Keras (ops.batch_normalization, ops.layer_normalization):
// y = x * inv + (beta - mean * inv), inv = gamma / sqrt(variance + epsilon).
#include <vector>

#include "espalier/nn/layer.h"

namespace espalier::nn {

struct BatchNormalizationConfig {
  int64_t axis = -1;
  double momentum = 0.99, epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = Zeros(), gamma_initializer = Ones();
  Initializer moving_mean_initializer = Zeros(), moving_variance_initializer = Ones();
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  std::string name = {};
  bool trainable = true;
};
// Statistics are of the whole batch, over all devices. In training they are the batch's, and the moving ones follow with `momentum`;
// otherwise, and when frozen, the moving ones are used. Weights: gamma, beta, moving_mean, moving_variance, each (size of axis).
// Errors: momentum outside 0..1, epsilon not above 0, an axis that does not exist or is the batch.
struct BatchNormalization : Layer {
  explicit BatchNormalization(BatchNormalizationConfig config = {});
};

struct LayerNormalizationConfig {
  std::vector<int64_t> axis = {-1};
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = Zeros(), gamma_initializer = Ones();
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  std::string name = {};
  bool trainable = true;
};
// Statistics of each sample over `axis`. Weights: gamma, beta, of the sizes of `axis`. Errors: as above; an axis named twice.
struct LayerNormalization : Layer {
  explicit LayerNormalization(LayerNormalizationConfig config = {});
};

}  // namespace espalier::nn

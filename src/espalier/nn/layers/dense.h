#pragma once
// Dense: activation(x W + b) over the last dim of a sample of any rank.
#include "espalier/nn/activation.h"
#include "espalier/nn/layer.h"

namespace espalier::nn {

// Keras' config, names and defaults. Constraints, quantization and LoRA are not supported.
struct DenseConfig {
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  std::string name = {};
  bool trainable = true;
};

// Weights: kernel (inputs, units), bias (units). Errors: units below 1; called on a scalar sample.
struct Dense : Layer {
  explicit Dense(int64_t units, DenseConfig config = {});
};

}  // namespace espalier::nn

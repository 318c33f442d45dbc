#pragma once
// Activations as layers: Activation, ReLU, LeakyReLU, ELU, Softmax.
#include <optional>

#include "espalier/nn/activation.h"
#include "espalier/nn/layer.h"

namespace espalier::nn {

struct LayerConfig {  // of layers that have nothing else to configure
  std::string name = {};
  bool trainable = true;
};

struct Activation : Layer {
  explicit Activation(ActivationFunction activation, LayerConfig config = {});
};

struct ReLUConfig {
  std::optional<double> max_value = {};
  double negative_slope = 0;
  double threshold = 0;
  std::string name = {};
};
struct ReLU : Layer {  // Error: a negative max_value, slope or threshold
  explicit ReLU(ReLUConfig config = {});
};

struct LeakyReLU : Layer {  // 0.3 here and 0.2 in the activation "leaky_relu", as in Keras. Error: a negative slope
  explicit LeakyReLU(double negative_slope = 0.3, LayerConfig config = {});
};

struct ELU : Layer {
  explicit ELU(double alpha = 1, LayerConfig config = {});
};

struct SoftmaxConfig {
  int64_t axis = -1;
  std::string name = {};
};
struct Softmax : Layer {  // Error: an axis that does not exist or is the batch
  explicit Softmax(SoftmaxConfig config = {});
};

}  // namespace espalier::nn

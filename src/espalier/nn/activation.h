#pragma once
// Keras' activation functions by name, composed from ops so that gradients, fusion and sharding need nothing of their own.
// Formulas: keras/src/activations/activations.py and jax.nn (Keras 3.15, jax backend). `softmax` and `log_softmax` run over the last dim.
// Not here: glu (it halves a dim), sparsemax; they are refused by name.
#include <string>

#include "espalier/ir/graph.h"

namespace espalier::nn {

struct ActivationFunction {
  std::string name = "linear";
  // Parameters where Keras has them; the defaults are those of the function, not of a layer of the same name.
  double negative_slope = 0.2;  // leaky_relu
  double alpha = 1;             // elu, celu
  bool approximate = false;     // gelu: the tanh form
  double threshold = 0.5;       // soft_shrink, hard_shrink

  ActivationFunction() = default;
  ActivationFunction(const char* name);         // NOLINT: "relu", as Keras takes it. Errors: an unknown name, with the nearest
  ActivationFunction(const std::string& name);  // NOLINT
};

ValueId apply_activation(Builder& builder, const ActivationFunction& activation, ValueId x);

}  // namespace espalier::nn

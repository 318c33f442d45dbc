#pragma once
// Where samples enter a model: `auto x = nn::Input({28, 28});`. The shape is that of one sample. An Input also stands first in a
// Sequential.
#include "espalier/nn/layer.h"

namespace espalier::nn {

struct InputConfig {
  std::string name = {};  // also the array's name in a data file
};

class Input : public Tensor {
 public:
  // Errors: a negative or empty dim, more dims than the IR has (one less than kMaxRank, for the batch).
  explicit Input(const Dims& shape, InputConfig config = {});
  operator Layer() const { return Layer(node()->layer); }  // NOLINT: Keras takes either in a Sequential
};

class InputLayer final : public LayerDef {
 public:
  InputLayer(const Dims& shape, std::string name);
  const Dims& shape() const { return shape_; }
  std::vector<Dims> output_shapes(const std::vector<Dims>&) const override { return {shape_}; }
  std::vector<ValueId> call(Trace&, const std::vector<ValueId>& inputs) const override { return inputs; }

 private:
  Dims shape_;
};

}  // namespace espalier::nn

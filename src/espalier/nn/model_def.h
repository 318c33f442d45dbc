#pragma once
// The inside of a Model: the recorded calls between its inputs and outputs, and the layers in Keras' order.
#include <memory>
#include <string>
#include <vector>

#include "espalier/nn/model.h"

namespace espalier::nn {

class ModelDef final : public LayerDef {
 public:
  enum class Kind { kFunctional, kSequential };

  ModelDef(std::vector<Tensor> inputs, std::vector<Tensor> outputs, ModelConfig config);
  ModelDef(const std::vector<Layer>& sequence, ModelConfig config);

  Kind kind = Kind::kFunctional;
  std::vector<Tensor> inputs, outputs;              // empty until built
  std::vector<std::shared_ptr<const Node>> nodes;   // calls in order of execution, inputs included
  std::vector<std::shared_ptr<LayerDef>> layers;    // Keras' order of layers and so of weights, Inputs included
  std::vector<std::shared_ptr<LayerDef>> in_order;  // as the graph first meets them, operands first: the order of automatic names
  int64_t calls = 0;                                // of layers, those within nested models included
  bool built() const { return !outputs.empty(); }
  bool has_own_input = true;  // false: a Sequential that got its shape from its first call

  void build_sequence(const Dims& input_shape);

  std::vector<Dims> output_shapes(const std::vector<Dims>& inputs) const override;
  std::vector<ValueId> call(Trace& trace, const std::vector<ValueId>& inputs) const override;
  void prepare(const std::vector<Dims>& inputs) override;

 private:
  void collect();
  void count_calls();
  void connect(Tensor x);
  std::vector<std::shared_ptr<LayerDef>> sequence_;
};

// Names and paths of all layers of a model, itself included (model.h). Errors: two layers of one name in one model; two of one path.
LayerTable name_layers(const ModelDef& model);

// "BatchNormalization" -> "batch_normalization", "ReLU" -> "re_lu", as keras.utils.to_snake_case.
std::string snake_case(const std::string& class_name);

}  // namespace espalier::nn

#pragma once
// Models, in Keras' words. A functional Model is what stands between symbolic inputs and outputs:
//   auto x = nn::Input({24});
//   auto y = nn::Dense(30, {.activation = "relu"})(x);
//   nn::Model model(x, y, {.name = "branches"});
// A Sequential is a stack: nn::Sequential({nn::Input({28, 28}), nn::Flatten(), nn::Dense(10)}). A model is a layer, so models nest, and
// copying one shares its layers. A model holds no values: those live where it is trained.
//
// Names. A layer without one is called as Keras would in a fresh session: the class in snake_case, then _1, _2, ..., counted over the
// outermost model in the order of its graph (a layer's operands before it). Paths of weights are Keras': `S/dense/kernel` in a Sequential
// named S, `dense/kernel` in a functional model; a nested Sequential that begins with an Input, and any nested functional model, starts its
// paths anew. Should two layers get one path (of two nested models), the later one's is preceded by its model's name.
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/distribution/distribution.h"
#include "espalier/nn/compilation.h"
#include "espalier/nn/fit.h"
#include "espalier/nn/layer.h"
#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

class ModelDef;
class Trainer;

struct Variable {
  std::string path;  // "sequential/dense/kernel"
  TensorType type;
  bool trainable = true;  // false also when its layer or a model around it is frozen
  Initializer initializer = {};
  Regularizer regularizer = {};
  std::string layer = {};  // the layer's path
};

struct ModelConfig {
  std::string name = {};
  bool trainable = true;
};

class Model : public Layer {
 public:
  // Errors: an output that does not depend on the inputs only (the missing input is named), an input that is no Input, two layers of one
  // name, no output.
  Model(const Tensors& inputs, const Tensors& outputs, ModelConfig config = {});

  const ModelDef& definition() const;
  std::string name() const;  // "sequential", "functional" without one of its own
  bool built() const;        // false for a Sequential that does not know its input's shape yet
  // Gives a Sequential without an Input its per-sample input shape. Errors: another shape than it has.
  void build(const Dims& input_shape);

  std::vector<Layer> layers() const;              // in Keras' order; without the Input in a Sequential
  Layer layer(const std::string& name) const;     // Error with the nearest name
  LayerTable layer_table() const;                 // names and paths, nested models included
  std::vector<std::string> input_names() const;   // of the Input layers; unique
  std::vector<std::string> output_names() const;  // of the layers that make the outputs; "_1", ... where one makes two
  std::vector<Dims> input_shapes() const;         // per sample
  std::vector<Dims> output_shapes() const;
  std::vector<Variable> variables() const;  // all, in Keras' order, each once
  int64_t parameter_count() const;

  // --- training (model_training.cpp). Copies of a compiled model share what was compiled and its weights.
  // distribution: none: what set_distribution said, else one device. Compiling again starts anew.
  void compile(Compilation compilation, const std::optional<Distribution>& distribution = std::nullopt);
  // What a data set for this model has to have (DataRequest::fields): its inputs and its losses' targets.
  std::vector<FieldSpec> fields() const;
  // Weights are made from the seed before the first step, unless loaded. Errors: not compiled; it does not fit the devices (kMemory).
  History fit(const Dataset& data, const FitOptions& options = {});
  Logs evaluate(const Dataset& data, int64_t batch_size = 32);
  // Rows of each output, in the order of the samples.
  std::vector<std::vector<float>> predict(const Dataset& data, int64_t batch_size = 32);
  void save_weights(const std::string& path);
  void load_weights(const std::string& path);
  // Layers, shapes, parameters; once compiled, also the layout of each variable and its bytes on a device.
  std::string summary() const;
  // All else: plans, memory, collectives, gradients (trainer.h).
  Trainer& trainer() const;

 protected:
  explicit Model(std::shared_ptr<ModelDef> def);

 private:
  std::shared_ptr<Trainer> trainer_;
  std::shared_ptr<ModelDef> checked() const;  // Error when not built
};

class Sequential : public Model {
 public:
  // Errors: no layer, an Input that is not first, a layer that does not fit the one before it, two layers of one name.
  explicit Sequential(const std::vector<Layer>& layers, ModelConfig config = {});
  Sequential(std::initializer_list<Layer> layers, ModelConfig config = {}) : Sequential(std::vector<Layer>(layers), std::move(config)) {}
};

}  // namespace espalier::nn

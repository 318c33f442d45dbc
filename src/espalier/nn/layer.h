#pragma once
// Layers, in Keras' words. A `Layer` is a handle: copies share the layer, and a layer that is called twice has its weights once. Calling
// one on symbolic tensors records the call; `Model` (model.h) collects the calls between its inputs and outputs.
// Shapes are per sample, without the batch. An axis counts the batch as dim 0, as in Keras.
#include <memory>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"
#include "espalier/nn/initializer.h"
#include "espalier/nn/regularizer.h"

namespace espalier::nn {

class LayerDef;
class Trace;
struct Node;

// A symbolic tensor: one output of one call of a layer.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<const Node> node, int output) : node_(std::move(node)), output_(output) {}
  const Dims& shape() const;
  const std::shared_ptr<const Node>& node() const { return node_; }  // null for a tensor made by default
  int output() const { return output_; }

 private:
  std::shared_ptr<const Node> node_;
  int output_ = 0;
};

// One tensor or several: x, {left, right}.
struct Tensors {
  std::vector<Tensor> list;
  Tensors(const Tensor& tensor) : list{tensor} {}                     // NOLINT
  Tensors(std::vector<Tensor> tensors) : list(std::move(tensors)) {}  // NOLINT
  Tensors(std::initializer_list<Tensor> tensors) : list(tensors) {}
};

class Layer {
 public:
  explicit Layer(std::shared_ptr<LayerDef> def) : def_(std::move(def)) {}

  // Records a call and returns its only output. Errors name the layer: inputs that do not fit it, or, on a later call, its weights.
  Tensor operator()(const Tensors& inputs) const;
  std::vector<Tensor> call(const Tensors& inputs) const;  // of a model with several outputs

  const std::string& name() const;        // as given; "" when the model is to choose (dense, dense_1, ...)
  const std::string& class_name() const;  // "Dense"

  // Frozen layers are not trained, and BatchNormalization then uses its moving statistics. Freezing a model freezes all of its layers.
  void freeze();
  void unfreeze();
  bool trainable() const;

  LayerDef& def() const { return *def_; }
  const std::shared_ptr<LayerDef>& shared() const { return def_; }

 private:
  std::shared_ptr<LayerDef> def_;
};

// A call of a layer. Its end does not recurse over the calls before it: models may be any number of calls deep.
struct Node {
  ~Node();
  std::shared_ptr<LayerDef> layer;
  mutable std::vector<Tensor> inputs;  // mutable for the destructor alone
  std::vector<Dims> outputs;
};

struct WeightSpec {
  std::string name;  // "kernel"
  Dims shape;
  Initializer initializer = {};
  Regularizer regularizer = {};
  bool trainable = true;
  DType dtype = DType::kF32;
};

// What a kind of layer implements. Configuration does not change after construction.
class LayerDef {
 public:
  LayerDef(std::string class_name, std::string name, bool trainable = true, Regularizer activity = {})
      : class_name_(std::move(class_name)), name_(std::move(name)), activity_(activity), trainable_(trainable) {}
  virtual ~LayerDef() = default;

  // The weights for inputs of these shapes, in Keras' order. Called once a call; every call has to give the same.
  virtual std::vector<WeightSpec> weights_for(const std::vector<Dims>&) const { return {}; }
  virtual std::vector<Dims> output_shapes(const std::vector<Dims>& inputs) const = 0;
  // Appends the layer's ops; values have the batch as dim 0.
  virtual std::vector<ValueId> call(Trace& trace, const std::vector<ValueId>& inputs) const = 0;
  // Before the first call on these shapes; a model without an input shape builds itself here.
  virtual void prepare(const std::vector<Dims>&) {}

  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return name_; }
  std::string label() const;  // "layer 'left' (Dense)", for errors
  const Regularizer& activity_regularizer() const { return activity_; }
  bool trainable() const { return trainable_; }
  void set_trainable(bool trainable) { trainable_ = trainable; }

  const std::vector<WeightSpec>& weights() const { return weights_; }  // of the first call
  void build(const std::vector<Dims>& inputs);

 private:
  std::string class_name_, name_;
  Regularizer activity_;
  bool trainable_, built_ = false;
  std::vector<WeightSpec> weights_;
  std::vector<Dims> built_for_;
};

// A layer of one input and one output.
class UnaryLayer : public LayerDef {
 public:
  using LayerDef::LayerDef;
  virtual std::vector<WeightSpec> weights_of(const Dims&) const { return {}; }
  virtual Dims output_shape(const Dims& input) const { return input; }
  virtual ValueId call_one(Trace& trace, ValueId x) const = 0;

  std::vector<WeightSpec> weights_for(const std::vector<Dims>& inputs) const final;
  std::vector<Dims> output_shapes(const std::vector<Dims>& inputs) const final;
  std::vector<ValueId> call(Trace& trace, const std::vector<ValueId>& inputs) const final;
};

// An axis of a tensor whose rank counts the batch; negative axes count from the end. Error naming `label` when there is no such axis or it
// is the batch's.
int sample_axis(int64_t axis, int rank_with_batch, const std::string& label);
// Several of them, sorted. An Error also when one is named twice.
Dims sample_axes(const std::vector<int64_t>& axes, int rank_with_batch, const std::string& label);

// "(None, 28, 28)": a per-sample shape as Keras shows it.
std::string batch_shape_text(const Dims& shape);

}  // namespace espalier::nn

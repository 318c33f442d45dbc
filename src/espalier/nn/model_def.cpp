#include "espalier/nn/model_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "espalier/nn/layers/input.h"

namespace espalier::nn {

namespace {

using NodePtr = std::shared_ptr<const Node>;

constexpr int64_t kMaxCalls = 1 << 20;  // each becomes ops of its own; the deepest networks have some thousand layers

// The calls that the outputs depend on. After keras/src/ops/function.py, map_graph: layers are sorted by their distance from the outputs,
// then by when a walk from the outputs first meets them. Keras' order of layers is the order of a model's weights.
struct Walk {
  std::vector<NodePtr> done;  // operands first
  std::unordered_set<const Node*> seen;
  std::unordered_map<const LayerDef*, int> met;  // order in which the walk enters layers

  // Not recursive: models may be any number of layers deep.
  void visit(const NodePtr& output) {
    std::vector<std::pair<NodePtr, size_t>> path;  // calls on the way, with the next operand of each
    enter(output, path);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < node->inputs.size()) {
        enter(node->inputs[next++].node(), path);
      } else {
        done.push_back(node);
        path.pop_back();
      }
    }
  }

  void enter(NodePtr node, std::vector<std::pair<NodePtr, size_t>>& path) {
    if (!seen.insert(node.get()).second) return;
    met.emplace(node->layer.get(), static_cast<int>(met.size()));
    path.emplace_back(std::move(node), 0);
  }
};

std::vector<std::shared_ptr<LayerDef>> keras_order(const Walk& walk) {
  std::unordered_map<const Node*, int> node_depth;
  std::map<const LayerDef*, int> layer_depth;
  std::vector<std::shared_ptr<LayerDef>> layers;
  for (auto node = walk.done.rbegin(); node != walk.done.rend(); ++node) {
    const auto& layer = (*node)->layer;
    if (!layer_depth.contains(layer.get())) layers.push_back(layer);
    int depth = std::max(node_depth[node->get()], layer_depth[layer.get()]);
    layer_depth[layer.get()] = depth;
    node_depth[node->get()] = depth;
    for (const Tensor& input : (*node)->inputs) {
      int& input_depth = node_depth[input.node().get()];
      input_depth = std::max(input_depth, depth + 1);
    }
  }
  std::sort(layers.begin(), layers.end(), [&](const auto& a, const auto& b) {
    return std::pair(-layer_depth[a.get()], walk.met.at(a.get())) < std::pair(-layer_depth[b.get()], walk.met.at(b.get()));
  });
  return layers;
}

}  // namespace

ModelDef::ModelDef(std::vector<Tensor> in, std::vector<Tensor> out, ModelConfig config)
    : LayerDef("Functional", std::move(config.name), config.trainable), inputs(std::move(in)), outputs(std::move(out)) {
  if (inputs.empty()) usage_error(fmt::format("{} has no inputs", label()), "", "begin with nn::Input");
  if (outputs.empty()) usage_error(fmt::format("{} has no outputs", label()));
  for (const std::vector<Tensor>* tensors : {&inputs, &outputs})
    for (const Tensor& tensor : *tensors) static_cast<void>(tensor.shape());  // refuses a tensor of no layer
  collect();
  name_layers(*this);
}

void ModelDef::collect() {
  std::unordered_set<const Node*> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NodePtr& node = inputs[i].node();
    if (dynamic_cast<const InputLayer*>(node->layer.get()) == nullptr)
      usage_error(fmt::format("input {} of {} is made by {}", i, label(), node->layer->label()), "",
                  "a model's inputs are nn::Input tensors");
    if (!given.insert(node.get()).second) usage_error(fmt::format("{} has {} as an input twice", label(), node->layer->label()));
  }
  Walk walk;
  for (const Tensor& output : outputs) walk.visit(output.node());
  for (const NodePtr& node : walk.done)
    if (node->inputs.empty() && !given.contains(node.get()))
      usage_error(fmt::format("{} needs the input of {}, which is not among its inputs", label(), node->layer->label()), "",
                  "add it to the model's inputs");
  nodes = walk.done;
  count_calls();
  layers = keras_order(walk);
  for (const Tensor& input : inputs) {  // Inputs are named first, in the order given; unused ones belong to the model too
    in_order.push_back(input.node()->layer);
    if (walk.met.contains(input.node()->layer.get())) continue;
    layers.push_back(input.node()->layer);
  }
  std::unordered_set<const LayerDef*> listed;
  for (const auto& layer : in_order) listed.insert(layer.get());
  for (const NodePtr& node : nodes)
    if (listed.insert(node->layer.get()).second) in_order.push_back(node->layer);
}

// A model that calls one twice that calls one twice ... has 2^depth calls in a file of depth lines.
void ModelDef::count_calls() {
  calls = 0;
  for (const NodePtr& node : nodes) {
    auto* inner = dynamic_cast<const ModelDef*>(node->layer.get());
    calls += 1 + (inner == nullptr ? 0 : inner->calls);
    if (calls > kMaxCalls)
      usage_error(fmt::format("{} makes more than {} calls of layers", label(), kMaxCalls), "", "call the models within it less often");
  }
}

ModelDef::ModelDef(const std::vector<Layer>& sequence, ModelConfig config)
    : LayerDef("Sequential", std::move(config.name), config.trainable), kind(Kind::kSequential), has_own_input(false) {
  std::unordered_set<std::string> names;
  for (const Layer& layer : sequence) {
    if (!sequence_.empty() && dynamic_cast<const InputLayer*>(&layer.def()) != nullptr)
      usage_error(fmt::format("{} has an Input as its layer {}", label(), sequence_.size()), "", "an Input stands first");
    if (!layer.name().empty() && !names.insert(layer.name()).second)
      usage_error(fmt::format("{} has two layers named '{}'", label(), layer.name()), "", "give one of them another name");
    sequence_.push_back(layer.shared());
  }
  if (sequence_.empty()) usage_error(fmt::format("{} has no layers", label()), "", "give it at least one");
  if (auto* input = dynamic_cast<const InputLayer*>(sequence_.front().get())) {
    has_own_input = true;
    connect(Tensor(std::make_shared<const Node>(Node{sequence_.front(), {}, {input->shape()}}), 0));
  } else if (auto* model = dynamic_cast<const ModelDef*>(sequence_.front().get()); model != nullptr && model->built()) {
    if (model->inputs.size() != 1)
      usage_error(fmt::format("{} begins with {}, which has {} inputs", label(), model->label(), model->inputs.size()), "",
                  "use a functional model");
    has_own_input = true;
    connect(Input(model->inputs.front().shape()));
  }
}

// Calls the layers one after another on x, which comes from an Input.
void ModelDef::connect(Tensor x) {
  inputs = {x};
  for (const auto& layer : sequence_)
    if (layer != x.node()->layer) x = Layer(layer)(x);
  outputs = {x};
  collect();
  name_layers(*this);
}

void ModelDef::build_sequence(const Dims& shape) {
  if (!built()) return connect(Input(shape));
  if (inputs.size() != 1 || inputs.front().shape() != shape)
    usage_error(
        fmt::format("{} has the input shape {}, not {}", label(), batch_shape_text(inputs.front().shape()), batch_shape_text(shape)));
}

void ModelDef::prepare(const std::vector<Dims>& shapes) {
  if (!built() && shapes.size() == 1) build_sequence(shapes.front());
}

std::vector<Dims> ModelDef::output_shapes(const std::vector<Dims>& shapes) const {
  size_t wanted = built() ? inputs.size() : 1;
  if (shapes.size() != wanted) usage_error(fmt::format("{} takes {} inputs, not {}", label(), wanted, shapes.size()));
  for (size_t i = 0; i < shapes.size(); ++i)
    if (shapes[i] != inputs[i].shape())
      usage_error(fmt::format("input {} of {} has the shape {}, not {}", i, label(), batch_shape_text(shapes[i]),
                              batch_shape_text(inputs[i].shape())));
  std::vector<Dims> results;
  for (const Tensor& output : outputs) results.push_back(output.shape());
  return results;
}

std::vector<ValueId> ModelDef::call(Trace& trace, const std::vector<ValueId>& given) const {
  std::unordered_map<const Node*, std::vector<ValueId>> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[inputs[i].node().get()] = {given[i]};
  auto value_of = [&](const Tensor& tensor) { return values.at(tensor.node().get())[static_cast<size_t>(tensor.output())]; };
  for (const NodePtr& node : nodes) {
    if (node->inputs.empty()) continue;
    std::vector<ValueId> operands;
    for (const Tensor& input : node->inputs) operands.push_back(value_of(input));
    values[node.get()] = trace.call(*node->layer, operands);
  }
  std::vector<ValueId> results;
  for (const Tensor& output : outputs) results.push_back(value_of(output));
  return results;
}

}  // namespace espalier::nn

#include "espalier/interop/keras_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "espalier/base/error.h"
#include "espalier/interop/keras_fields.h"
#include "espalier/interop/keras_layers.h"
#include "espalier/interop/keras_objects.h"
#include "espalier/nn/layers.h"

namespace espalier::keras {
namespace {

enum class Level { kOutermost, kNested };

// Inputs are computed in float32; whole numbers are exact in it up to 2^24, which covers pixels and one-hot codes.
void read_input_dtype(Fields& fields, std::vector<std::string>& warnings) {
  const Json* value = fields.find("dtype");
  if (!value) return;
  const std::string name = value->is_string() ? value->get<std::string>() : "";
  const bool whole = name == "bool" || name.starts_with("int") || name.starts_with("uint");
  if (!whole) read_dtype(fields, warnings);
}

void check_elements(const Dims& shape, const std::string& what, const std::string& place) {
  double elements = 1;
  for (int64_t size : shape) elements *= static_cast<double>(size);
  if (elements > static_cast<double>(kMaxElements)) {
    usage_error(fmt::format("{} has the shape {}, more than 2^44 elements", what, to_string(shape)), place, "make the layer smaller");
  }
}

// The first of those that are one layer, and what it is in the file.
struct SharedLayer {
  nn::Layer made;
  std::string class_name;
  size_t inputs = 0, outputs = 0;  // of a model
};
using SharedLayers = std::map<int64_t, SharedLayer>;

size_t inputs_of(const Layer& layer) { return layer.model ? layer.model->inputs.size() : 1; }
size_t outputs_of(const Layer& layer) { return layer.model ? layer.model->outputs.size() : 1; }

class ModelBuilder {
 public:
  ModelBuilder(const std::string& where, std::vector<std::string>& warnings, SharedLayers& shared)
      : where_(where), warnings_(warnings), shared_(shared) {}

  nn::Model build(const Graph& graph, Level level, const std::string& inside) {
    inside_ = inside;
    for (const Layer& layer : graph.layers) make(graph, layer, level);
    for (const auto& [layer, call] : graph.order) run(graph, layer, call);
    return graph.kind == GraphKind::kSequential ? stack(graph) : functional(graph, level);
  }

 private:
  std::string place(const Layer& layer) const { return place_of(where_, layer.name, layer.class_name) + inside_; }
  std::string place() const { return fmt::format("'{}'", where_) + inside_; }

  void make(const Graph& graph, const Layer& layer, Level level) {
    const auto known = layer.shared_id ? shared_.find(*layer.shared_id) : shared_.end();
    if (layer.class_name == "InputLayer") {
      return make_input(graph, layer, level);  // an id on it says nothing: it is of this model alone
    } else if (known != shared_.end()) {
      const SharedLayer& first = known->second;
      if (first.class_name != layer.class_name || first.inputs != inputs_of(layer) || first.outputs != outputs_of(layer))
        usage_error(fmt::format("'shared_object_id' {} is that of another layer too ({})", *layer.shared_id, first.class_name),
                    place(layer), "write the model again");
      layers_.push_back(first.made);
    } else if (layer.model) {
      const std::string inner = fmt::format("{} within '{}'", inside_, layer.name);
      layers_.push_back(ModelBuilder(where_, warnings_, shared_).build(*layer.model, Level::kNested, inner));
    } else {
      at_place(place(layer), [&] { layers_.push_back(make_layer(layer, place(layer), warnings_)); });
    }
    if (layer.shared_id)
      shared_.emplace(*layer.shared_id, SharedLayer{layers_.back(), layer.class_name, inputs_of(layer), outputs_of(layer)});
  }

  void make_input(const Graph& graph, const Layer& layer, Level level) {
    Fields fields(layer.config, place(layer));
    fields.skip({"name", "trainable"});
    read_input_dtype(fields, warnings_);
    for (const char* name : {"sparse", "ragged", "optional"}) fields.require(name, {false});
    const Json* shape = fields.find("batch_shape");
    if (!shape) usage_error("the InputLayer has no 'batch_shape'", place(layer), "give keras.Input a shape");
    int64_t batch = 0;
    const Dims dims = sample_shape(*shape, "batch_shape", place(layer), &batch);
    if (batch > 0 && level == Level::kOutermost) {
      warnings_.push_back(
          fmt::format("'batch_shape' fixes the batch at {}, and the batch size of the run is used: {}", batch, place(layer)));
    }
    fields.finish();
    check_elements(dims, "a sample", place(layer));
    const nn::Input input(dims, {.name = level == Level::kOutermost ? input_name(graph, layer) : layer.name});
    tensors_[{static_cast<int>(layers_.size()), 0}] = {input};
    layers_.push_back(input);
  }

  // In a dict of inputs, the data goes by the keys.
  static std::string input_name(const Graph& graph, const Layer& layer) {
    for (const NamedRef& input : graph.inputs) {
      if (&graph.layers[static_cast<size_t>(input.ref.layer)] == &layer && !input.key.empty()) return input.key;
    }
    return layer.name;
  }

  void run(const Graph& graph, int index, int call) {
    const Layer& layer = graph.layers[static_cast<size_t>(index)];
    if (layer.class_name == "InputLayer" || graph.inputs.empty()) return;
    std::vector<nn::Tensor> inputs;
    for (const NamedRef& input : arguments(layer, layer.calls[static_cast<size_t>(call)])) inputs.push_back(tensor(input.ref));
    check_operation(layer, inputs);
    std::vector<nn::Tensor>& outputs = tensors_[{index, call}];
    at_place(place(layer), [&] { outputs = layers_[static_cast<size_t>(index)].call(inputs); });
    for (const nn::Tensor& output : outputs) check_elements(output.shape(), "its result", place(layer));
    for (const nn::WeightSpec& weight : layers_[static_cast<size_t>(index)].def().weights()) {
      check_elements(weight.shape, fmt::format("'{}'", weight.name), place(layer));
    }
  }

  // Operations broadcast as numpy does, counted from the last dim; merging layers do otherwise for tensors of different rank.
  void check_operation(const Layer& layer, const std::vector<nn::Tensor>& inputs) const {
    const bool unequal = inputs.size() == 2 && !(inputs[0].shape() == inputs[1].shape());
    if (layer.class_name.starts_with("operation ") && unequal) {
      usage_error(fmt::format("an operation on shapes {} and {}", to_string(inputs[0].shape()), to_string(inputs[1].shape())), place(layer),
                  "operations on tensors are read for equal shapes only");
    }
  }

  const nn::Tensor& tensor(const TensorRef& ref) const { return tensors_.at({ref.layer, ref.call})[static_cast<size_t>(ref.output)]; }

  // A nested model that is called with a dict takes its inputs by key, or by the names of its InputLayers.
  std::vector<NamedRef> arguments(const Layer& layer, const Call& call) const {
    const bool named = std::all_of(call.inputs.begin(), call.inputs.end(), [](const NamedRef& one) { return !one.key.empty(); });
    if (!layer.model || !named) return call.inputs;
    std::vector<NamedRef> result;
    for (const NamedRef& wanted : layer.model->inputs) {
      const std::string& name = wanted.key.empty() ? layer.model->layers[static_cast<size_t>(wanted.ref.layer)].name : wanted.key;
      const auto given = std::find_if(call.inputs.begin(), call.inputs.end(), [&](const NamedRef& one) { return one.key == name; });
      if (given == call.inputs.end()) usage_error(fmt::format("the model is called without its input '{}'", name), place(layer), "name it");
      result.push_back(*given);
    }
    return result;
  }

  nn::Model stack(const Graph& graph) {
    std::optional<nn::Model> model;
    at_place(place(), [&] { model = nn::Sequential(layers_, {.name = graph.name, .trainable = graph.trainable}); });
    return *model;
  }

  nn::Model functional(const Graph& graph, Level level) {
    std::vector<nn::Tensor> inputs, outputs;
    for (const NamedRef& input : graph.inputs) inputs.push_back(tensor(input.ref));
    for (const NamedRef& output : graph.outputs) outputs.push_back(named_output(graph, output, level));
    std::optional<nn::Model> model;
    at_place(place(), [&] { model = nn::Model(inputs, outputs, {.name = graph.name, .trainable = graph.trainable}); });
    return *model;
  }

  // In a dict of outputs, losses and data go by the keys. Espalier calls an output by its layer, so a layer without effect bears the key.
  nn::Tensor named_output(const Graph& graph, const NamedRef& output, Level level) const {
    const nn::Tensor& result = tensor(output.ref);
    const bool taken = std::any_of(graph.layers.begin(), graph.layers.end(), [&](const Layer& one) { return one.name == output.key; });
    if (level == Level::kNested || output.key.empty() || taken) return result;
    return nn::Activation("linear", {.name = output.key})(result);
  }

  const std::string& where_;
  std::vector<std::string>& warnings_;
  SharedLayers& shared_;
  std::string inside_;
  std::vector<nn::Layer> layers_;
  std::map<std::pair<int, int>, std::vector<nn::Tensor>> tensors_;  // by layer and call
};

}  // namespace

nn::Model build_model(const Graph& graph, const std::string& where, std::vector<std::string>& warnings) {
  SharedLayers shared;
  return ModelBuilder(where, warnings, shared).build(graph, Level::kOutermost, "");
}

}  // namespace espalier::keras

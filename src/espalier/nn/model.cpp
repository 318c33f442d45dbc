#include "espalier/nn/model.h"

#include <fmt/format.h>

#include <set>

#include "espalier/base/nearest.h"
#include "espalier/nn/layers/input.h"
#include "espalier/nn/model_def.h"

namespace espalier::nn {

Model::Model(const Tensors& inputs, const Tensors& outputs, ModelConfig config)
    : Layer(std::make_shared<ModelDef>(inputs.list, outputs.list, std::move(config))) {}

Model::Model(std::shared_ptr<ModelDef> def) : Layer(std::move(def)) {}

Sequential::Sequential(const std::vector<Layer>& layers, ModelConfig config)
    : Model(std::make_shared<ModelDef>(layers, std::move(config))) {}

const ModelDef& Model::definition() const { return static_cast<const ModelDef&>(def()); }

std::shared_ptr<ModelDef> Model::checked() const {
  auto def = std::static_pointer_cast<ModelDef>(shared());
  if (!def->built()) usage_error(fmt::format("{} does not know the shape of its input", def->label()), "", "put an Input first");
  return def;
}

std::string Model::name() const { return built() ? layer_table().at(&definition()).name : definition().name(); }
bool Model::built() const { return definition().built(); }
void Model::build(const Dims& input_shape) { std::static_pointer_cast<ModelDef>(shared())->build_sequence(input_shape); }
LayerTable Model::layer_table() const { return name_layers(*checked()); }

std::vector<Layer> Model::layers() const {
  std::vector<Layer> layers;
  for (const auto& layer : checked()->layers)
    if (definition().kind == ModelDef::Kind::kFunctional || dynamic_cast<const InputLayer*>(layer.get()) == nullptr)
      layers.emplace_back(layer);
  return layers;
}

Layer Model::layer(const std::string& name) const {
  LayerTable table = layer_table();
  std::vector<std::string> names;
  for (const auto& layer : definition().layers) {
    if (table.at(layer.get()).name == name) return Layer(layer);
    names.push_back(table.at(layer.get()).name);
  }
  usage_error(fmt::format("there is no layer '{}'", name), fmt::format("model '{}'", this->name()), suggest(name, names));
}

namespace {

std::vector<std::string> names_of(const std::vector<Tensor>& tensors, const LayerTable& table) {
  std::vector<std::string> names;
  std::set<std::string> used;
  std::map<std::string, int> numbers;  // the last one given to each name
  for (const Tensor& tensor : tensors) {
    const std::string& base = table.at(tensor.node()->layer.get()).name;
    std::string name = base;
    for (int& number = numbers[base]; !used.insert(name).second;) name = fmt::format("{}_{}", base, ++number);
    names.push_back(name);
  }
  return names;
}

std::vector<Dims> shapes_of(const std::vector<Tensor>& tensors) {
  std::vector<Dims> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape());
  return shapes;
}

void list_variables(const ModelDef& model, const LayerTable& table, std::set<const LayerDef*>& seen, std::vector<Variable>& variables) {
  for (const auto& layer : model.layers) {
    if (!seen.insert(layer.get()).second) continue;
    const LayerEntry& entry = table.at(layer.get());
    for (const WeightSpec& weight : layer->weights())
      variables.push_back({.path = entry.path + "/" + weight.name,
                           .type = {weight.dtype, weight.shape},
                           .trainable = weight.trainable && !entry.frozen,
                           .initializer = weight.initializer,
                           .regularizer = weight.regularizer,
                           .layer = entry.path});
    if (auto* inner = dynamic_cast<const ModelDef*>(layer.get())) list_variables(*inner, table, seen, variables);
  }
}

}  // namespace

std::vector<std::string> Model::input_names() const { return names_of(checked()->inputs, layer_table()); }
std::vector<std::string> Model::output_names() const { return names_of(checked()->outputs, layer_table()); }
std::vector<Dims> Model::input_shapes() const { return shapes_of(checked()->inputs); }
std::vector<Dims> Model::output_shapes() const { return shapes_of(checked()->outputs); }

std::vector<Variable> Model::variables() const {
  std::vector<Variable> variables;
  std::set<const LayerDef*> seen;
  list_variables(*checked(), layer_table(), seen, variables);
  return variables;
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const Variable& variable : variables()) count += variable.type.shape.volume();
  return count;
}

}  // namespace espalier::nn

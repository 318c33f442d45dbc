#include "espalier/nn/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace espalier::nn {

Node::~Node() {
  std::vector<Tensor> left = std::move(inputs);
  while (!left.empty()) {
    const Tensor last = std::move(left.back());
    left.pop_back();
    if (last.node() == nullptr || last.node().use_count() > 1) continue;
    std::vector<Tensor>& before = last.node()->inputs;
    std::move(before.begin(), before.end(), std::back_inserter(left));
    before.clear();
  }
}

const Dims& Tensor::shape() const {
  if (node_ == nullptr) usage_error("a tensor that comes from no layer", "Tensor()", "begin with nn::Input");
  return node_->outputs[static_cast<size_t>(output_)];
}

Tensor Layer::operator()(const Tensors& inputs) const {
  std::vector<Tensor> outputs = call(inputs);
  if (outputs.size() != 1)
    usage_error(fmt::format("{} has {} outputs, not one", def_->label(), outputs.size()), "", "take them with call()");
  return outputs.front();
}

std::vector<Tensor> Layer::call(const Tensors& given) const {
  const std::vector<Tensor>& inputs = given.list;
  if (inputs.empty()) usage_error(fmt::format("{} is called on no input", def_->label()));
  std::vector<Dims> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  def_->build(shapes);
  auto node = std::make_shared<const Node>(Node{def_, inputs, def_->output_shapes(shapes)});
  for (const Dims& shape : node->outputs) checked_volume(shape, fmt::format("the result of {}", def_->label()));
  std::vector<Tensor> outputs;
  for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) outputs.emplace_back(node, i);
  return outputs;
}

const std::string& Layer::name() const { return def_->name(); }
const std::string& Layer::class_name() const { return def_->class_name(); }
void Layer::freeze() { def_->set_trainable(false); }
void Layer::unfreeze() { def_->set_trainable(true); }
bool Layer::trainable() const { return def_->trainable(); }

std::string LayerDef::label() const {
  return name_.empty() ? fmt::format("layer {}", class_name_) : fmt::format("layer '{}' ({})", name_, class_name_);
}

namespace {

std::string shapes_text(const std::vector<Dims>& shapes) {
  std::string text;
  for (const Dims& shape : shapes) text += (text.empty() ? "" : ", ") + batch_shape_text(shape);
  return text;
}

}  // namespace

void LayerDef::build(const std::vector<Dims>& inputs) {
  prepare(inputs);
  std::vector<WeightSpec> wanted = weights_for(inputs);
  for (const WeightSpec& weight : wanted) checked_volume(weight.shape, fmt::format("weight '{}' of {}", weight.name, label()));
  if (!built_) {
    weights_ = std::move(wanted);
    built_for_ = inputs;
    built_ = true;
    return;
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].shape != weights_[i].shape)
      usage_error(fmt::format("{} has its weight '{}' of shape {} from a call on {}, and {} needs {}", label(), weights_[i].name,
                              to_string(weights_[i].shape), shapes_text(built_for_), shapes_text(inputs), to_string(wanted[i].shape)),
                  "", "call a shared layer on inputs of one width, or make another layer");
}

namespace {

void check_one_input(const LayerDef& layer, size_t inputs) {
  if (inputs != 1) usage_error(fmt::format("{} takes one input, not {}", layer.label(), inputs));
}

}  // namespace

std::vector<WeightSpec> UnaryLayer::weights_for(const std::vector<Dims>& inputs) const {
  check_one_input(*this, inputs.size());
  return weights_of(inputs.front());
}

std::vector<Dims> UnaryLayer::output_shapes(const std::vector<Dims>& inputs) const {
  check_one_input(*this, inputs.size());
  return {output_shape(inputs.front())};
}

std::vector<ValueId> UnaryLayer::call(Trace& trace, const std::vector<ValueId>& inputs) const { return {call_one(trace, inputs.front())}; }

int sample_axis(int64_t axis, int rank, const std::string& label) {
  int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front >= rank)
    usage_error(fmt::format("axis {} of {} does not exist", axis, label), "",
                fmt::format("its input has {} dims, the batch counted", rank));
  if (from_front == 0) usage_error(fmt::format("axis {} of {} is the batch", axis, label), "", "choose a later axis");
  return static_cast<int>(from_front);
}

Dims sample_axes(const std::vector<int64_t>& axes, int rank, const std::string& label) {
  Dims dims;
  for (int64_t axis : axes) {
    int dim = sample_axis(axis, rank, label);
    if (std::find(dims.begin(), dims.end(), dim) != dims.end()) usage_error(fmt::format("{} names an axis twice", label));
    dims.push_back(dim);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

std::string batch_shape_text(const Dims& shape) {
  std::string text = "(None";
  for (int64_t size : shape) text += fmt::format(", {}", size);
  return text + (shape.empty() ? ",)" : ")");
}

}  // namespace espalier::nn

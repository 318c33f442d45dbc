#include "espalier/nn/layer_trace.h"

#include <fmt/format.h>

namespace espalier::nn {

namespace {

const WeightSpec& weight_spec(const LayerDef& layer, const std::string& name) {
  for (const WeightSpec& weight : layer.weights())
    if (weight.name == name) return weight;
  ESPALIER_ASSERT(!"a layer asks for a weight that it did not declare");
  return layer.weights().front();
}

}  // namespace

Formula Trace::weight(const std::string& name) {
  std::string path = current_->path + "/" + name;
  if (auto found = updated_.find(path); found != updated_.end()) return Formula::of(found->second);
  const WeightSpec& spec = weight_spec(*layer_, name);
  return Formula::of(input(Role::kVariable, path, {spec.dtype, spec.shape}));
}

void Trace::update_weight(const std::string& name, const Formula& value) {
  Phase phase = builder_.phase;
  builder_.phase = Phase::kUpdate;
  updated_[current_->path + "/" + name] = value.emit(builder_);
  builder_.phase = phase;
}

uint32_t Trace::stream() const { return random_stream(fmt::format("{}#{}", current_->path, calls_.at(layer_))); }
ValueId Trace::random_step() { return input(Role::kScalar, "random_step", {DType::kI32, {}}); }

std::vector<ValueId> Trace::call(const LayerDef& layer, const std::vector<ValueId>& inputs) {
  const LayerEntry* outer_entry = current_;
  const LayerDef* outer_layer = layer_;
  std::string outer_scope = builder_.scope;
  current_ = &table_.at(&layer);
  layer_ = &layer;
  builder_.scope = current_->path;
  ++calls_[&layer];
  std::vector<ValueId> outputs = layer.call(*this, inputs);
  for (ValueId output : outputs)  // Keras divides by the batch
    if (auto term = penalty(builder_, layer.activity_regularizer(), output))
      losses_.push_back((Formula::of(*term) / static_cast<double>(shape(output)[0])).emit(builder_));
  current_ = outer_entry;
  layer_ = outer_layer;
  builder_.scope = outer_scope;
  return outputs;
}

ValueId Trace::input(Role role, const std::string& name, const TensorType& type) {
  auto [found, is_new] = inputs_.emplace(name, kNoValue);
  if (is_new) found->second = builder_.graph().add_input(role, name, type);
  return found->second;
}

}  // namespace espalier::nn

// Names and paths of a model's layers: `name_layers` of model_def.h.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "espalier/nn/layers/input.h"
#include "espalier/nn/model_def.h"

namespace espalier::nn {

std::string snake_case(const std::string& name) {
  auto upper = [](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; };
  auto lower = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    bool begins_word = i > 0 && upper(name[i]) && ((i + 1 < name.size() && lower(name[i + 1])) || lower(name[i - 1]));
    if (begins_word) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

namespace {

class Namer {
 public:
  LayerTable name(const ModelDef& root) {
    take_given(root);
    choose_inputs(root);
    choose(root);
    table_[&root] = {fresh(root), "", !root.trainable()};
    check_unique(root);
    set_paths(root, prefix_inside(root, ""));
    freeze(root, !root.trainable());
    return std::move(table_);
  }

 private:
  // A model that stands in several others is walked once a question: walks would else double with every level.
  bool first_visit(const char* question, const ModelDef& model) { return visited_.emplace(question, &model).second; }

  void take_given(const ModelDef& model) {
    if (!first_visit("given", model)) return;
    if (!model.name().empty()) taken_.insert(model.name());
    for (const auto& layer : model.layers) {
      if (!layer->name().empty()) taken_.insert(layer->name());
      if (auto* inner = dynamic_cast<const ModelDef*>(layer.get())) take_given(*inner);
    }
  }

  // A model that is called on an Input was made before that Input, with its own.
  void choose_inputs(const ModelDef& model) {
    if (!first_visit("inputs", model)) return;
    for (const auto& layer : model.in_order)
      if (auto* inner = dynamic_cast<const ModelDef*>(layer.get()); inner != nullptr && inner->has_own_input) choose_inputs(*inner);
    for (const auto& layer : model.in_order)
      if (dynamic_cast<const InputLayer*>(layer.get()) != nullptr && !table_.contains(layer.get()))
        table_[layer.get()] = {fresh(*layer), "", false};
  }

  // A nested model's layers were made before it, so they are named before it.
  void choose(const ModelDef& model) {
    for (const auto& layer : model.in_order) {
      if (table_.contains(layer.get())) continue;
      if (auto* inner = dynamic_cast<const ModelDef*>(layer.get())) choose(*inner);
      table_[layer.get()] = {fresh(*layer), "", false};
    }
  }

  std::string fresh(const LayerDef& layer) {
    if (!layer.name().empty()) return layer.name();
    std::string base = snake_case(layer.class_name());
    while (true) {
      int number = next_[base]++;
      std::string name = number == 0 ? base : fmt::format("{}_{}", base, number);
      if (taken_.insert(name).second) return name;
    }
  }

  void check_unique(const ModelDef& model) {
    if (!first_visit("unique", model)) return;
    std::map<std::string, const LayerDef*> by_name;
    for (const auto& layer : model.layers) {
      const std::string& name = table_.at(layer.get()).name;
      if (!by_name.emplace(name, layer.get()).second)
        usage_error(fmt::format("two layers of model '{}' are named '{}'", table_.at(&model).name, name), "",
                    "give one of them another name");
      if (auto* inner = dynamic_cast<const ModelDef*>(layer.get())) check_unique(*inner);
    }
  }

  std::string prefix_inside(const ModelDef& model, const std::string& outside) const {
    if (model.kind == ModelDef::Kind::kFunctional) return "";
    return (model.has_own_input ? "" : outside) + table_.at(&model).name + "/";
  }

  void set_paths(const ModelDef& model, const std::string& prefix) {
    for (const auto& layer : model.layers) {
      LayerEntry& entry = table_.at(layer.get());
      if (!entry.path.empty()) continue;  // shared with a model before
      entry.path = prefix + entry.name;
      if (auto* inner = dynamic_cast<const ModelDef*>(layer.get()))
        set_paths(*inner, prefix_inside(*inner, prefix));
      else if (!layer->weights().empty())
        make_path_unique(entry, table_.at(&model).name);
    }
  }

  void make_path_unique(LayerEntry& entry, const std::string& model_name) {
    if (paths_.insert(entry.path).second) return;
    entry.path = model_name + "/" + entry.path;
    if (!paths_.insert(entry.path).second)
      usage_error(fmt::format("two layers have the path '{}'", entry.path), "",
                  "give one of them, or of the models around them, another name");
  }

  void freeze(const ModelDef& model, bool around) {
    if (!first_visit(around ? "frozen" : "free", model)) return;
    for (const auto& layer : model.layers) {
      bool frozen = around || !layer->trainable();
      LayerEntry& entry = table_.at(layer.get());
      entry.frozen = entry.frozen || frozen;
      if (auto* inner = dynamic_cast<const ModelDef*>(layer.get())) freeze(*inner, frozen);
    }
  }

  LayerTable table_;
  std::set<std::string> taken_, paths_;
  std::set<std::pair<std::string_view, const ModelDef*>> visited_;
  std::map<std::string, int> next_;
};

}  // namespace

LayerTable name_layers(const ModelDef& model) { return Namer().name(model); }

}  // namespace espalier::nn

#include "espalier/interop/keras_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "espalier/base/error.h"
#include "espalier/base/nearest.h"
#include "espalier/interop/keras_calls.h"

namespace espalier::keras {
namespace {

bool is_functional(const std::string& class_name) { return class_name == "Functional" || class_name == "Model"; }
bool is_model(const std::string& class_name) { return class_name == "Sequential" || is_functional(class_name); }

const Json& field(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto at = object.find(name);
  return at == object.end() ? kNull : *at;
}

// A nested model's layers are read from the source: a copy at every level would cost depth times size.
Json without_layers(const Json& config) {
  Json rest = Json::object();
  if (!config.is_object()) return config;
  for (const auto& [name, value] : config.items())
    if (name != "layers") rest[name] = value;
  return rest;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

// "BatchNormalization" -> "batch_normalization", "ReLU" -> "re_lu": Keras' default names (keras/src/utils/naming.py).
std::string snake_case(const std::string& name) {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool before_word = i > 0 && upper(name[i]) && i + 1 < name.size() && name[i + 1] >= 'a' && name[i + 1] <= 'z';
    const bool after_word = i > 0 && upper(name[i]) && lower(name[i - 1]);
    if (before_word || after_word) result += '_';
    result += static_cast<char>(upper(name[i]) ? name[i] + 32 : name[i]);
  }
  return result;
}

class GraphReader {
 public:
  GraphReader(const std::string& where, std::vector<std::string>& warnings) : where_(where), warnings_(warnings) {}

  Graph read(const Json& model, const std::string& inside) {
    inside_ = inside;
    const Json& config = field(model, "config");
    graph_.kind = is_functional(text_of(field(model, "class_name"))) ? GraphKind::kFunctional : GraphKind::kSequential;
    graph_.name = text_of(field(config, "name"));
    if (graph_.name.empty()) graph_.name = graph_.kind == GraphKind::kFunctional ? "functional" : "sequential";
    graph_.trainable = field(config, "trainable") != Json(false);
    read_layers(field(config, "layers"));
    if (graph_.kind == GraphKind::kSequential) {
      chain(model);
    } else {
      connect(config);
    }
    order_calls();
    report_unused();
    return std::move(graph_);
  }

 private:
  std::string place(const Layer& layer) const { return place_of(where_, layer.name, layer.class_name) + inside_; }
  std::string place() const { return fmt::format("'{}'", where_) + inside_; }

  void read_layers(const Json& layers) {
    if (!layers.is_array() || layers.empty()) usage_error("the model has no layers", place(), "add layers, and write the model again");
    std::set<std::string> taken;
    for (const Json& layer : layers) taken.insert(text_of(field(field(layer, "config"), "name")));
    for (const Json& layer : layers) read_layer(layer, taken);
  }

  void read_layer(const Json& source, std::set<std::string>& taken) {
    Layer layer;
    layer.class_name = text_of(field(source, "class_name"));
    layer.config = is_model(layer.class_name) ? without_layers(field(source, "config")) : field(source, "config");
    layer.build_config = field(source, "build_config");
    if (const Json& id = field(source, "shared_object_id"); id.is_number_integer()) layer.shared_id = id.get<int64_t>();
    const std::string outer = text_of(field(source, "name")), inner = text_of(field(layer.config, "name"));
    layer.name = inner.empty() ? outer : inner;
    if (layer.class_name.empty()) {
      usage_error(fmt::format("layer {} has no 'class_name'", graph_.layers.size()), place(),
                  "give what model.to_json() of Keras 3 writes");
    }
    if (layer.name.empty()) layer.name = fresh_name(snake_case(layer.class_name), taken);
    if (layer.name.find('/') != std::string::npos) {
      usage_error(fmt::format("the name '{}' has a '/', which separates the parts of a variable's path", layer.name), place(layer),
                  "rename the layer");
    }
    if (!layer.config.is_object() && !is_model(layer.class_name))
      usage_error("the layer has no 'config'", place(layer), "write the model again");
    refuse_custom(source, layer);
    const std::string known_as = outer.empty() ? layer.name : outer;
    const int index = static_cast<int>(graph_.layers.size());
    const bool unique = index_.emplace(known_as, index).second && names_.insert(layer.name).second;
    if (!unique) usage_error(fmt::format("two layers are called '{}'", layer.name), place(), "rename one of them");
    if (is_model(layer.class_name)) {
      layer.model =
          std::make_shared<Graph>(GraphReader(where_, warnings_).read(source, fmt::format("{} within '{}'", inside_, layer.name)));
      layer.model->name = layer.name;
    }
    sources_.push_back(&source);
    graph_.layers.push_back(std::move(layer));
  }

  std::string fresh_name(const std::string& base, std::set<std::string>& taken) {
    std::string name = base;
    for (int& number = numbers_[base]; !taken.insert(name).second;) name = fmt::format("{}_{}", base, ++number);
    return name;
  }

  // A custom class may bear a known name; what tells it is its module, or the package in its registered name.
  void refuse_custom(const Json& source, Layer& layer) {
    const std::string module = text_of(field(source, "module")), registered = text_of(field(source, "registered_name"));
    const bool keras = module == "keras" || module.starts_with("keras.");
    const bool foreign = source.contains("module") && !keras;
    if (foreign || registered.find('>') != std::string::npos) {
      usage_error(fmt::format("'{}' is a class of its author, not of Keras", registered.empty() ? layer.class_name : registered),
                  place(layer), "replace it by Keras' own layers");
    }
    if (module.starts_with("keras.src.ops") || module.starts_with("keras.ops")) layer.class_name = "operation " + layer.class_name;
  }

  // --- a stack of layers --------------------------------------------------------------------------------------------------------------

  void chain(const Json& model) {
    if (graph_.layers.front().class_name != "InputLayer") insert_input(model);
    TensorRef last;
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      Layer& layer = graph_.layers[i];
      if (i > 0 && layer.class_name == "InputLayer") usage_error("an InputLayer stands behind another layer", place(layer), "put it first");
      layer.calls.emplace_back();
      if (i > 0) layer.calls[0].inputs.push_back({"", last});
      last = {static_cast<int>(i), 0, 0};
    }
    if (graph_.layers.front().class_name == "InputLayer") graph_.inputs.push_back({"", {0, 0, 0}});
    graph_.outputs.push_back({"", last});
  }

  // The shape stands in one of several fields. A stack without any is built from its first call, or by whoever trains it.
  void insert_input(const Json& model) {
    const Layer& first = graph_.layers.front();
    Json shape = field(field(model, "config"), "build_input_shape");
    if (shape.is_null()) shape = field(field(model, "build_config"), "input_shape");
    if (shape.is_null() && first.model) shape = shape_of_input(*first.model);
    if (shape.is_null()) shape = field(first.config, "batch_shape");
    if (shape.is_null()) shape = field(first.build_config, "input_shape");
    if (shape.is_null()) return;
    Layer input;
    input.class_name = "InputLayer";
    input.name = fresh_name("input_layer", names_);
    input.config = Json{{"name", input.name}, {"batch_shape", shape}};
    graph_.layers.insert(graph_.layers.begin(), std::move(input));
  }

  static Json shape_of_input(const Graph& model) {
    const bool has_one = model.inputs.size() == 1 && !model.layers.empty();
    return has_one ? field(model.layers[static_cast<size_t>(model.inputs[0].ref.layer)].config, "batch_shape") : Json();
  }

  // --- a graph of calls ---------------------------------------------------------------------------------------------------------------

  void connect(const Json& config) {
    std::vector<std::vector<RawCall>> raw;
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      raw.push_back(read_calls(field(*sources_[i], "inbound_nodes"), place(graph_.layers[i]), graph_.layers[i].class_name));
      graph_.layers[i].calls.resize(raw[i].size());
    }
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      for (size_t c = 0; c < raw[i].size(); ++c) {
        Call& call = graph_.layers[i].calls[c];
        call.constant = raw[i][c].constant;
        call.constant_first = raw[i][c].constant_first;
        for (const RawRef& ref : raw[i][c].inputs) call.inputs.push_back({ref.key, resolve(ref, place(graph_.layers[i]))});
      }
    }
    graph_.inputs = ends(config, "input_layers");
    graph_.outputs = ends(config, "output_layers");
    std::set<int> listed;
    for (const NamedRef& input : graph_.inputs) {
      check_input(input.ref);
      listed.insert(input.ref.layer);
    }
    for (size_t i = 0; i < graph_.layers.size(); ++i) check_is_input(graph_.layers[i], listed.contains(static_cast<int>(i)));
  }

  std::vector<NamedRef> ends(const Json& config, const char* name) {
    std::vector<NamedRef> result;
    const std::string at = fmt::format("{}, '{}'", place(), name);
    for (RawRef ref : read_ends(field(config, name), name, place())) {
      const auto layer = index_.find(ref.layer);
      // Keras counts calls of a nested Functional from 1 here, and only here.
      const bool shifted = layer != index_.end() && is_functional(graph_.layers[static_cast<size_t>(layer->second)].class_name);
      if (shifted && ref.call == 0 && graph_.layers[static_cast<size_t>(layer->second)].calls.size() == 1) ref.call = 1;
      if (shifted) --ref.call;
      result.push_back({ref.key, resolve(ref, at)});
    }
    return result;
  }

  TensorRef resolve(const RawRef& ref, const std::string& at) {
    const auto found = index_.find(ref.layer);
    if (found == index_.end()) {
      std::vector<std::string> known;
      for (const auto& [name, index] : index_) known.push_back(name);
      usage_error(fmt::format("a tensor comes from the layer '{}', which is not in the model", ref.layer), at, suggest(ref.layer, known));
    }
    const Layer& layer = graph_.layers[static_cast<size_t>(found->second)];
    const auto calls = static_cast<int64_t>(layer.calls.size());
    if (ref.call < 0 || ref.call >= calls) {
      usage_error(
          fmt::format("a tensor comes from call {} of '{}', which has {} call{}", ref.call, ref.layer, calls, calls == 1 ? "" : "s"), at,
          "write the model again");
    }
    const auto outputs = layer.model ? static_cast<int64_t>(layer.model->outputs.size()) : 1;
    if (ref.output < 0 || ref.output >= outputs) {
      usage_error(fmt::format("a tensor is output {} of '{}', which has {}", ref.output, ref.layer, outputs), at, "write the model again");
    }
    return {found->second, static_cast<int>(ref.call), static_cast<int>(ref.output)};
  }

  void check_input(const TensorRef& ref) {
    const Layer& layer = graph_.layers[static_cast<size_t>(ref.layer)];
    if (layer.class_name != "InputLayer") usage_error("the model's input is no InputLayer", place(layer), "start the model at keras.Input");
  }

  void check_is_input(const Layer& layer, bool listed) {
    if (layer.class_name != "InputLayer" || listed) return;
    usage_error("the InputLayer is not among the model's inputs", place(layer), "add it to 'input_layers'");
  }

  // --- order --------------------------------------------------------------------------------------------------------------------------

  // Keras' own reader retries until all is built, since a layer shared at different depths may stand before what it is called on.
  void order_calls() {
    std::map<std::pair<int, int>, int> waiting;  // how many inputs are not there yet
    std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> users;
    std::set<std::pair<int, int>> ready;  // ordered, so that calls stay as near to the file's order as they can
    for (int l = 0; l < static_cast<int>(graph_.layers.size()); ++l) {
      const Layer& layer = graph_.layers[static_cast<size_t>(l)];
      for (int c = 0; c < static_cast<int>(layer.calls.size()); ++c) {
        const auto& inputs = layer.calls[static_cast<size_t>(c)].inputs;
        for (const NamedRef& input : inputs) users[{input.ref.layer, input.ref.call}].emplace_back(l, c);
        if (inputs.empty()) {
          ready.emplace(l, c);
        } else {
          waiting[{l, c}] = static_cast<int>(inputs.size());
        }
      }
    }
    while (!ready.empty()) {
      const std::pair<int, int> next = *ready.begin();
      ready.erase(ready.begin());
      graph_.order.push_back(next);
      for (const auto& user : users[next]) {
        const auto at = waiting.find(user);
        if (--at->second > 0) continue;
        waiting.erase(at);
        ready.insert(user);
      }
    }
    if (waiting.empty()) return;
    const auto& [layer, call] = waiting.begin()->first;
    const Layer& stuck = graph_.layers[static_cast<size_t>(layer)];
    usage_error(fmt::format("call {} of '{}' waits for its own result", call, stuck.name), place(stuck), "a model cannot run in a circle");
  }

  void report_unused() {
    std::set<std::pair<int, int>> used;
    for (const NamedRef& end : graph_.outputs) used.emplace(end.ref.layer, end.ref.call);
    for (const Layer& layer : graph_.layers) {
      for (const Call& call : layer.calls) {
        for (const NamedRef& input : call.inputs) used.emplace(input.ref.layer, input.ref.call);
      }
    }
    for (const auto& [l, c] : graph_.order) {
      if (used.count({l, c})) continue;
      const std::string& name = graph_.layers[static_cast<size_t>(l)].name;
      warnings_.push_back(fmt::format("call {} of '{}' is stored but no one uses it: {}", c, name, place()));
    }
    for (const Layer& layer : graph_.layers) {
      if (layer.calls.empty()) warnings_.push_back(fmt::format("layer '{}' is stored but never called: {}", layer.name, place()));
    }
  }

  const std::string& where_;
  std::vector<std::string>& warnings_;
  std::string inside_;
  Graph graph_;
  std::map<std::string, int> index_;  // by the name that other layers use
  std::set<std::string> names_;
  std::map<std::string, int> numbers_;  // the last one given to each kind of layer without a name
  std::vector<const Json*> sources_;
};

}  // namespace

std::string place_of(const std::string& where, const std::string& name, const std::string& class_name) {
  return fmt::format("'{}', layer '{}' ({})", where, name, class_name);
}

Graph read_graph(const Json& model, const std::string& where, std::vector<std::string>& warnings) {
  return GraphReader(where, warnings).read(model, "");
}

}  // namespace espalier::keras

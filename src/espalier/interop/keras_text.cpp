#include "espalier/interop/keras_text.h"

#include <fmt/format.h>

#include <array>

#include "espalier/base/error.h"

namespace espalier::keras {
namespace {

// Models within models cost about 5 brackets a level; the deepest in the wild have 4 levels.
constexpr int kMaxDepth = 500;
constexpr const char* kLoadAndWrite = "load it in Keras 3 and write model.to_json() again";
constexpr const char* kWhatToGive = "give what model.to_json() of Keras 3 writes";

std::string position(const std::string& text, size_t byte) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < byte && i < text.size(); ++i) {
    const bool ends = text[i] == '\n';
    line += ends;
    column = ends ? 1 : column + 1;
  }
  return fmt::format("line {}, column {}", line, column);
}

void check_depth(const std::string& text, const std::string& where) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMaxDepth) {
      usage_error(fmt::format("more than {} brackets inside one another", kMaxDepth), fmt::format("'{}', {}", where, position(text, i)),
                  kWhatToGive);
    }
  }
}

// nlohmann's messages name its own tokens; only the place is worth showing, and whether the text just stops.
Json parse_checked(const std::string& text, const std::string& where) {
  check_depth(text, where);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const size_t last = text.find_last_not_of(" \t\r\n");
    const size_t byte = error.byte == 0 ? 0 : error.byte - 1;
    const bool ends = last == std::string::npos || byte > last;
    usage_error(ends ? "the file ends before its JSON does" : "this is not JSON",
                fmt::format("'{}', {}", where, position(text, std::min(byte, text.size()))), ends ? "write it again" : kWhatToGive);
  } catch (const Json::exception&) {  // a number beyond a double
    usage_error("a number is too large", fmt::format("'{}'", where), kWhatToGive);
  }
}

void refuse_binary(const std::string& text, const std::string& where) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    usage_error("the model file is empty", fmt::format("'{}'", where), kWhatToGive);
  if (text.starts_with("PK\x03\x04")) {
    usage_error("this is an archive (.keras), not JSON", fmt::format("'{}'", where),
                "give its config.json, or what model.to_json() writes");
  }
  if (text.starts_with("\x89HDF")) {
    usage_error("this is an HDF5 file, not JSON", fmt::format("'{}'", where), "load it in Keras 3 and write model.to_json()");
  }
}

// A file may be a string that holds the JSON (json.dump(model.to_json(), f)); so may TensorFlow.js' model_config.
Json decode_strings(Json value, const std::string& where) {
  for (int i = 0; i < 3 && value.is_string(); ++i) value = parse_checked(value.get<std::string>(), where);
  return value;
}

bool names_graph(const std::string& class_name) { return class_name == "Functional" || class_name == "Model"; }

std::string version_of(const Json& model) {
  const auto at = model.find("keras_version");
  return at != model.end() && at->is_string() ? at->get<std::string>() : "";
}

// What shows an older file in a layer's config; "" for nothing. Keras 1's words first: Keras 2 shares batch_input_shape with it.
std::string sign_of_keras_1(const std::string& class_name, const Json& config) {
  static constexpr std::array kWords = {"output_dim",   "nb_filter",   "W_regularizer", "b_regularizer",
                                        "W_constraint", "border_mode", "dim_ordering",  "nb_row"};
  for (const char* word : kWords) {
    if (config.contains(word) && !(class_name == "Embedding" && config.contains("embeddings_initializer"))) return word;
  }
  if (config.contains("p") && class_name.find("Dropout") != std::string::npos) return "p";
  return "";
}

std::string sign_of_keras_2(const Json& layer, const Json& config) {
  if (config.contains("batch_input_shape")) return "batch_input_shape";
  const auto nodes = layer.find("inbound_nodes");
  if (nodes != layer.end() && nodes->is_array() && !nodes->empty() && nodes->front().is_array()) return "inbound_nodes as lists";
  const auto policy = config.find("dtype");
  if (policy != config.end() && policy->is_object() && policy->value("class_name", Json()) == "Policy") return "dtype as Policy";
  return "";
}

struct Signs {
  std::string generation_1, generation_2;  // "layer 'dense' has 'batch_input_shape'"
  bool generation_3 = false;
};

const Json* layers_of(const Json& config) {
  if (config.is_array()) return &config;
  if (!config.is_object()) return nullptr;
  const auto layers = config.find("layers");
  return layers != config.end() && layers->is_array() ? &*layers : nullptr;
}

// The depth check bounds this recursion.
void collect_signs(const Json& model, Signs& signs) {
  const auto own = model.find("config");
  const Json* layers = own == model.end() ? nullptr : layers_of(*own);
  if (!layers) return;
  if (own->is_array() && signs.generation_2.empty()) signs.generation_2 = "the config of a Sequential is a list";
  for (const Json& layer : *layers) {
    if (!layer.is_object()) continue;
    const auto config = layer.find("config");
    const auto class_name = layer.find("class_name");
    if (config == layer.end() || class_name == layer.end() || !class_name->is_string()) continue;
    collect_signs(layer, signs);
    if (!config->is_object()) continue;
    const std::string name = config->contains("name") ? shown((*config)["name"]) : shown(*class_name);
    const std::string one = sign_of_keras_1(class_name->get<std::string>(), *config), two = sign_of_keras_2(layer, *config);
    if (!one.empty() && signs.generation_1.empty()) signs.generation_1 = fmt::format("layer {} has '{}'", name, one);
    if (!two.empty() && signs.generation_2.empty()) signs.generation_2 = fmt::format("layer {} has '{}'", name, two);
    if (config->contains("batch_shape") || layer.contains("module")) signs.generation_3 = true;
  }
}

Json unwrap(Json value, const std::string& where) {
  value = decode_strings(std::move(value), where);
  const auto topology = value.is_object() ? value.find("modelTopology") : value.end();
  if (value.is_object() && topology != value.end()) value = decode_strings(Json(*topology), where);
  const auto model_config = value.is_object() ? value.find("model_config") : value.end();
  if (value.is_object() && model_config != value.end()) value = decode_strings(Json(*model_config), where);
  if (value.is_object() && !value.contains("class_name") && value.contains("layers")) {
    const char* kind = value.contains("input_layers") || value.contains("output_layers") ? "Functional" : "Sequential";
    value = Json{{"class_name", kind}, {"config", std::move(value)}};
  }
  return value;
}

}  // namespace

std::string shown(const Json& value) {
  constexpr size_t kMost = 60;
  std::string text = value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMost) {
    size_t end = kMost;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a UTF-8 character
    text = text.substr(0, end) + "...";
  }
  return "'" + text + "'";
}

Json parse_model(const std::string& text, const std::string& where) {
  refuse_binary(text, where);
  const Json model = unwrap(parse_checked(text, where), where);
  const std::string place = fmt::format("'{}'", where);
  if (!model.is_object() || !model.contains("class_name") || !model["class_name"].is_string()) {
    usage_error("this JSON is no Keras model, it has neither 'class_name' nor 'layers'", place, kWhatToGive);
  }
  const std::string class_name = model["class_name"].get<std::string>();
  const auto config = model.find("config");
  if (config == model.end() || (!config->is_object() && !config->is_array())) {
    usage_error(fmt::format("the model ({}) has no 'config'", shown(class_name)), place, kWhatToGive);
  }
  if (class_name != "Sequential" && !names_graph(class_name)) {
    const std::string what = layers_of(*config) ? fmt::format("the model's class {} is not Keras' own", shown(class_name))
                                                : fmt::format("the file holds a {}, not a model", shown(class_name));
    usage_error(what, place, "build it as a Sequential or Functional model in Keras and write model.to_json() again");
  }
  if (!layers_of(*config)) usage_error("the model has no list 'layers'", place, kWhatToGive);
  return model;
}

void refuse_older(const Json& model, const std::string& where) {
  Signs signs;
  collect_signs(model, signs);
  const std::string version = version_of(model);
  const std::string file = fmt::format("'{}'", where);
  if (!signs.generation_1.empty() || (version.starts_with("1.") && !signs.generation_3)) {
    usage_error("this is a Keras 1 file",
                file + ", " + (signs.generation_1.empty() ? "'keras_version' is " + shown(version) : signs.generation_1), kLoadAndWrite);
  }
  if (!signs.generation_2.empty()) usage_error("this is a Keras 2 file", file + ", " + signs.generation_2, kLoadAndWrite);
  // TensorFlow's number may stand here for Keras 3 too; a file of Keras 3 shows itself in its layers.
  if (!version.empty() && !version.starts_with("3.") && !signs.generation_3) {
    usage_error("this is a Keras 2 file", file + ", 'keras_version' is " + shown(version), kLoadAndWrite);
  }
}

}  // namespace espalier::keras

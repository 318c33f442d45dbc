#pragma once
// Keras files written in a test: layers, stacks and graphs as Keras serializes them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "espalier/interop/keras.h"
#include "expect_error.h"
#include "texts.h"

namespace espalier {

using Json = nlohmann::json;

inline KerasFile read_file(const std::string& name) { return read_keras(content(name), name); }
inline KerasFile read(const Json& file) { return read_keras(file.dump(), "m.json"); }
inline std::string error_of(const Json& file) {
  return error_text([&] { read(file); });
}
inline std::string error_of_text(const std::string& text) {
  return error_text([&] { read_keras(text, "m.json"); });
}

inline Json layer(const std::string& class_name, const Json& config) {
  return {{"module", "keras.layers"}, {"class_name", class_name}, {"config", config}, {"registered_name", nullptr}};
}
inline Json input(const std::string& name, const Json& batch_shape) {
  return layer("InputLayer", {{"name", name}, {"batch_shape", batch_shape}, {"dtype", "float32"}, {"sparse", false}, {"ragged", false}});
}
inline Json dense(const std::string& name, int units) { return layer("Dense", {{"name", name}, {"units", units}}); }

inline Json sequential(const std::vector<Json>& layers) {
  return {{"module", "keras"}, {"class_name", "Sequential"}, {"config", {{"name", "s"}, {"layers", layers}}}, {"registered_name", nullptr}};
}
inline Json one_layer(const Json& one) { return sequential({input("x", {nullptr, 4}), one}); }

inline Json tensor(const std::string& name, int call = 0, int output = 0) {
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"shape", {nullptr, 4}}, {"dtype", "float32"}, {"keras_history", {name, call, output}}}}};
}
inline Json called(Json layer, const std::vector<Json>& argument_lists, const Json& kwargs = Json::object()) {
  layer["name"] = layer["config"]["name"];
  layer["inbound_nodes"] = Json::array();
  for (const Json& args : argument_lists) layer["inbound_nodes"].push_back({{"args", args}, {"kwargs", kwargs}});
  return layer;
}
inline Json functional(const std::vector<Json>& layers, const Json& inputs, const Json& outputs) {
  return {{"module", "keras.src.models.functional"},
          {"class_name", "Functional"},
          {"config", {{"name", "f"}, {"layers", layers}, {"input_layers", inputs}, {"output_layers", outputs}}},
          {"registered_name", "Functional"}};
}
inline Json x_and(const std::vector<Json>& rest, const Json& outputs) {
  std::vector<Json> layers = {called(input("x", {nullptr, 4}), {})};
  layers.insert(layers.end(), rest.begin(), rest.end());
  return functional(layers, {{"x", 0, 0}}, outputs);
}

}  // namespace espalier

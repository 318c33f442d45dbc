#pragma once
// From the text of a file to the JSON of a Keras 3 model. Everything that can stand around the model is taken off here: a string that holds
// the JSON, the wrapper of TensorFlow.js, a bare config. Files that hold no Keras 3 model are told by name: Keras 2 and 1, HDF5, a .keras
// archive, JSON of something else. The parser never recurses over the input, and brackets are counted first, so depth cannot end the stack.
#include <nlohmann/json.hpp>
#include <string>

namespace espalier::keras {

using Json = nlohmann::json;  // objects sorted by key, the order in which Keras flattens a dict

// `{"class_name", "config", ...}` of a Sequential or Functional model. `where` names the file in errors (kUsage); a syntax error has its
// line and column.
Json parse_model(const std::string& text, const std::string& where);

// Throws when a layer shows that the file was written by Keras 2 or 1, naming the layer and what shows it. `model` as from parse_model.
void refuse_older(const Json& model, const std::string& where);

// A value as errors show it: at most 60 characters, in quotes. Strings without their own quotes.
std::string shown(const Json& value);

}  // namespace espalier::keras

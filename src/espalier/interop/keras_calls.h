#pragma once
// The calls of a layer and the ends of a model, as they stand in a file: which tensors, by layer name, call and output. Names and numbers
// are not yet checked against the model.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/interop/keras_text.h"

namespace espalier::keras {

struct RawRef {
  std::string key, layer;
  int64_t call = 0, output = 0;
};

struct RawCall {
  std::vector<RawRef> inputs;
  std::optional<double> constant;
  bool constant_first = false;
};

// `nodes` is a layer's 'inbound_nodes', one entry a call: {"args": [...], "kwargs": {...}}. An InputLayer has one call without inputs.
std::vector<RawCall> read_calls(const Json& nodes, const std::string& place, const std::string& class_name);

// 'input_layers' or 'output_layers': ["x", 0, 0], a list of such, or a dict of such.
std::vector<RawRef> read_ends(const Json& ends, const std::string& field, const std::string& place);

}  // namespace espalier::keras

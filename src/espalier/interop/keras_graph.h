#pragma once
// The neutral form of a Keras 3 model: layers in the order of the file, each with the calls made of it, and which tensors go in and out.
// Every way in which Keras 3 writes a graph ends here in one way: a Sequential is a chain of calls, call indices count from 0 for every
// kind of layer, flat and nested and named lists of tensors are one list. Nothing here knows what a layer computes.
//
// Refused (kUsage): names used twice, references to layers, calls or outputs that do not exist, cycles, training=True, masks given as
// tensors, tensors from outside the graph.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/interop/keras_text.h"

namespace espalier::keras {

struct Graph;

struct TensorRef {
  int layer = 0;  // index into Graph::layers
  int call = 0;
  int output = 0;
  friend bool operator==(const TensorRef&, const TensorRef&) = default;
};

// A tensor and, where the file has a dict of them, its key.
struct NamedRef {
  std::string key;
  TensorRef ref;
};

struct Call {
  std::vector<NamedRef> inputs;    // dicts in the order of their sorted keys
  std::optional<double> constant;  // the number of `x * 2`; operations only
  bool constant_first = false;     // `2 - x`
};

struct Layer {
  std::string class_name;  // "Dense"; operations on tensors (x + y) are "operation Add"
  std::string name;
  Json config;
  Json build_config;
  std::vector<Call> calls;                // an InputLayer has one, without inputs
  std::optional<int64_t> shared_id = {};  // layers with the same one, in models within models, are one layer
  std::shared_ptr<Graph> model;           // of a nested Sequential or Functional model
};

enum class GraphKind { kSequential, kFunctional };

struct Graph {
  GraphKind kind = GraphKind::kSequential;
  std::string name;
  bool trainable = true;
  std::vector<Layer> layers;
  std::vector<NamedRef> inputs, outputs;  // a Sequential without any shape has no inputs
  // (layer, call) in an order in which every call comes after those it takes tensors from.
  std::vector<std::pair<int, int>> order;
};

// `model` as parse_model returns it. `warnings` gets what is stored but has no effect.
Graph read_graph(const Json& model, const std::string& where, std::vector<std::string>& warnings);

// "'m.json', layer 'dense' (Dense)".
std::string place_of(const std::string& where, const std::string& name, const std::string& class_name);

}  // namespace espalier::keras

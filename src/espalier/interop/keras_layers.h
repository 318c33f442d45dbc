#pragma once
// Which of Keras' layer classes Espalier has, and how the config of each becomes a layer: a table with one line a class.
#include <string>
#include <vector>

#include "espalier/interop/keras_graph.h"
#include "espalier/nn/layer.h"

namespace espalier::keras {

// The layer with its config checked. Errors (kUsage) name file, layer and field: a class that is not in the table (with those that are),
// values out of range, fields whose meaning Espalier does not have. `warnings` gets dtypes that are computed in float32.
nn::Layer make_layer(const Layer& layer, const std::string& place, std::vector<std::string>& warnings);

// The classes of the table, sorted; "InputLayer", "Sequential" and "Functional" are read too but are no lines of it.
std::vector<std::string> known_layers();

}  // namespace espalier::keras

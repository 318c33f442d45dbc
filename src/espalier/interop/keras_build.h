#pragma once
// From the neutral graph of a Keras file to a Model: layers are made once and called in order, nested models are built first.
#include <string>
#include <vector>

#include "espalier/interop/keras_graph.h"
#include "espalier/nn/model.h"

namespace espalier::keras {

// More elements than any sample or variable of a real model, and few enough that sums over all of them stay far below 2^63 bytes.
inline constexpr int64_t kMaxElements = int64_t{1} << 44;

// A Sequential without any input shape is returned unbuilt (`built()` is false). Errors (kUsage): all of make_layer; layers that do not fit
// their inputs; tensors and variables of more than kMaxElements.
nn::Model build_model(const Graph& graph, const std::string& where, std::vector<std::string>& warnings);

}  // namespace espalier::keras

#pragma once
// `model.summary()` of Keras as text: layers with output shape and parameters, and below each its variables when there are columns for
// them (a training program adds layout and bytes a device).
#include <functional>
#include <string>
#include <vector>

#include "espalier/nn/model.h"

namespace espalier::nn {

struct VariableColumn {
  std::string title;  // "Layout"
  std::function<std::string(const Variable&)> text;
};

// Ends in a newline. Widths follow from the contents. A nested model is one row, its variables stand below it.
std::string summary(const Model& model, const std::vector<VariableColumn>& columns = {});

}  // namespace espalier::nn

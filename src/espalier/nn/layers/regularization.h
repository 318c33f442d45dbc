#pragma once
// Dropout: in training a share `rate` of the elements becomes 0, the rest is divided by 1 - rate. Which ones is a function of seed, layer
// path, step and global element index, so it does not depend on the mesh.
#include <optional>

#include "espalier/nn/layer.h"

namespace espalier::nn {

struct DropoutConfig {
  std::optional<int64_t> seed = {};  // replaces the run's seed
  std::string name = {};
};
struct Dropout : Layer {  // Error: a rate outside 0..1
  explicit Dropout(double rate, DropoutConfig config = {});
};

}  // namespace espalier::nn

#pragma once
// Reads what Keras 3 writes with `model.to_json()`: a Sequential or Functional model, and what it was compiled with.
//   KerasFile file = read_keras(text, "model.json");
//   nn::Trainer trainer(file.model, *file.compilation, DataParallel(mesh));
// The path from text to model: keras_text.h (JSON, wrappers, generation of the file), keras_graph.h (one neutral form of layers and calls),
// keras_layers.h (a table of layer classes), keras_build.h (the model), keras_compile.h.
// Not here: weights (safetensors, checkpoint/), and files of Keras 2 and 1, which are told by name.
#include <optional>
#include <string>
#include <vector>

#include "espalier/nn/compilation.h"
#include "espalier/nn/model.h"

namespace espalier {

struct KerasFile {
  nn::Model model;                             // a Sequential without any shape in the file is not built()
  std::optional<nn::Compilation> compilation;  // of a model that was compiled
  std::vector<std::string> warnings;           // what the file says and has no effect here, each with its place
};

// Parts of the compile section that the caller replaces: that Espalier does not have the file's own is then no error.
struct KerasReplaced {
  bool optimizer = false, loss = false, metrics = false;
};

// `where` names the file in messages. Errors (kUsage) name file, layer and field: no JSON (line and column), no Keras 3 model, layers or
// values that Espalier does not have, graphs that do not fit together, sizes beyond what can be counted. No text can crash it.
KerasFile read_keras(const std::string& text, const std::string& where, const KerasReplaced& replaced = {});

}  // namespace espalier

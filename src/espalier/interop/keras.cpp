#include "espalier/interop/keras.h"

#include "espalier/interop/keras_build.h"
#include "espalier/interop/keras_compile.h"
#include "espalier/interop/keras_graph.h"
#include "espalier/interop/keras_text.h"

namespace espalier {

KerasFile read_keras(const std::string& text, const std::string& where, const KerasReplaced& replaced) {
  std::vector<std::string> warnings;
  const keras::Json source = keras::parse_model(text, where);
  keras::refuse_older(source, where);
  const keras::Graph graph = keras::read_graph(source, where, warnings);
  nn::Model model = keras::build_model(graph, where, warnings);
  std::optional<nn::Compilation> compilation = keras::read_compilation(source, model, where, replaced, warnings);
  return {std::move(model), std::move(compilation), std::move(warnings)};
}

}  // namespace espalier

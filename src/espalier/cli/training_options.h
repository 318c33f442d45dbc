#pragma once
// --optimizer, --loss and their like laid over what the model file says.
#include <optional>

#include "espalier/cli/options.h"
#include "espalier/nn/compilation.h"
#include "espalier/nn/model.h"

namespace espalier::cli {

// What an option does not give comes from the file; an optimizer of another kind than the file's starts from Keras' defaults. Without any
// optimizer it is SGD: Keras' own default, RMSprop, is not here.
// Errors (kUsage): unknown names (with the nearest), an output that the model does not have, momentum of an optimizer other than sgd.
nn::Compilation compilation_of(const Options& options, const std::optional<nn::Compilation>& file, const nn::Model& model);

}  // namespace espalier::cli

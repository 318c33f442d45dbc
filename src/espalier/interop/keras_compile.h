#pragma once
// The 'compile_config' of a Keras file: optimizer, losses and metrics in each of the forms that Keras 3 writes.
#include <optional>
#include <string>
#include <vector>

#include "espalier/interop/keras.h"
#include "espalier/interop/keras_text.h"

namespace espalier::keras {

// Nothing when the model was not compiled. Errors (kUsage) name the file and the field: an optimizer, loss or metric that Espalier does
// not have, a learning rate schedule, values out of range, outputs that `model` does not have.
std::optional<nn::Compilation> read_compilation(const Json& source, const nn::Model& model, const std::string& where,
                                                const KerasReplaced& replaced, std::vector<std::string>& warnings);

}  // namespace espalier::keras

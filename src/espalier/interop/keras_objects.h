#pragma once
// Activations, initialisers, regularisers and dtypes as Keras writes them inside a layer's config: a name, an object, or null.
// All errors (kUsage) carry the place of `fields` and the field's name.
#include <functional>
#include <string>
#include <vector>

#include "espalier/interop/keras_fields.h"
#include "espalier/nn/activation.h"
#include "espalier/nn/initializer.h"
#include "espalier/nn/regularizer.h"

namespace espalier::keras {

// "relu", null (linear), a serialised function, or a layer used as one: {"class_name": "LeakyReLU", "config": {"negative_slope": 0.3}}.
nn::ActivationFunction read_activation(Fields& fields, const std::string& name);
// An object or a name; `fallback` when absent. A seed may be a number, null or a SeedGenerator.
nn::Initializer read_initializer(Fields& fields, const std::string& name, const nn::Initializer& fallback);
nn::Regularizer read_regularizer(Fields& fields, const std::string& name);
// Constraints are refused.
void refuse_constraint(Fields& fields, const std::string& name);
std::optional<int64_t> read_seed(Fields& fields, const std::string& name = "seed");
// float32 passes; other float types are computed in float32, with a warning; quantised ones and strings are refused.
void read_dtype(Fields& fields, std::vector<std::string>& warnings);

// Runs `action`; an Error from it gets `place` behind what is wrong: "WHAT; TODO" becomes "WHAT: PLACE; TODO", unless it
// has the place already.
void at_place(const std::string& place, const std::function<void()>& action);

// `value` as a class and its config: {"class_name", "config"}, or a bare name. Custom classes are refused.
struct Object {
  std::string class_name;
  Json config = Json::object();
};
Object read_object(const Json& value, const std::string& what, const std::string& place);

}  // namespace espalier::keras

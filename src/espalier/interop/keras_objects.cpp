#include "espalier/interop/keras_objects.h"

#include <fmt/format.h>

#include "espalier/base/error.h"

namespace espalier::keras {
namespace {

std::string part_of(const Fields& fields, const std::string& name) { return fmt::format("{}, '{}'", fields.place(), name); }

nn::ActivationFunction named_activation(const std::string& name, const std::string& place) {
  nn::ActivationFunction result;
  at_place(place, [&] { result = nn::ActivationFunction(name); });
  return result;
}

// ReLU as an object: its parameters have to be those of one of the named functions.
nn::ActivationFunction relu_from(Fields& config) {
  const double slope = config.number("negative_slope", 0), threshold = config.number("threshold", 0);
  const bool bounded = config.find("max_value") != nullptr;
  if (threshold != 0 || (bounded && (slope != 0 || config.number("max_value", 0) != 6))) {
    usage_error("this ReLU is none of 'relu', 'relu6' and 'leaky_relu'", config.place(), "make it a layer of its own");
  }
  nn::ActivationFunction result(bounded ? "relu6" : slope != 0 ? "leaky_relu" : "relu");
  result.negative_slope = slope;
  return result;
}

// A layer in the place of a function.
nn::ActivationFunction activation_from(const Object& object, const std::string& place) {
  Fields config(object.config, place);
  config.skip({"name", "trainable", "dtype"});
  nn::ActivationFunction result;
  if (object.class_name == "ReLU") {
    result = relu_from(config);
  } else if (object.class_name == "LeakyReLU") {
    result = nn::ActivationFunction("leaky_relu");
    result.negative_slope = config.number("negative_slope", 0.3);
  } else if (object.class_name == "ELU") {
    result = nn::ActivationFunction("elu");
    result.alpha = config.number("alpha", 1);
  } else if (object.class_name == "Softmax") {
    config.require("axis", {-1});
    result = nn::ActivationFunction("softmax");
  } else if (object.class_name == "Activation") {
    result = read_activation(config, "activation");
  } else {
    result = named_activation(object.class_name, place);
  }
  config.finish();
  return result;
}

void read_scaling(Fields& config, nn::Initializer& result) {
  result.scale = config.number("scale", 1);
  if (!(result.scale > 0)) config.wrong("scale", result.scale, "give a number above 0");
  const std::string mode = config.word("mode", "fan_in"), shape = config.word("distribution", "truncated_normal");
  if (mode == "fan_in")
    result.mode = nn::FanMode::kFanIn;
  else if (mode == "fan_out")
    result.mode = nn::FanMode::kFanOut;
  else if (mode == "fan_avg")
    result.mode = nn::FanMode::kFanAvg;
  else
    config.wrong("mode", mode, "give 'fan_in', 'fan_out' or 'fan_avg'");
  if (shape == "uniform")
    result.distribution = nn::ScalingDistribution::kUniform;
  else if (shape == "truncated_normal" || shape == "normal")
    result.distribution = nn::ScalingDistribution::kTruncatedNormal;
  else if (shape == "untruncated_normal")
    result.distribution = nn::ScalingDistribution::kUntruncatedNormal;
  else
    config.wrong("distribution", shape, "give 'uniform', 'truncated_normal' or 'untruncated_normal'");
}

// The fields that each kind has beside the seed; the name has already given the kind and Keras' defaults.
void read_parameters(Fields& config, const std::string& class_name, nn::Initializer& result) {
  using Kind = nn::Initializer::Kind;
  switch (result.kind) {
    case Kind::kConstant:
      if (class_name == "Constant" || class_name == "constant") result.value = config.number("value", 0);
      break;
    case Kind::kUniform:
      result.minval = config.number("minval", result.minval);
      result.maxval = config.number("maxval", result.maxval);
      break;
    case Kind::kNormal:
    case Kind::kTruncatedNormal:
      result.mean = config.number("mean", result.mean);
      result.stddev = config.number("stddev", result.stddev);
      if (result.stddev < 0) config.wrong("stddev", result.stddev, "give 0 or more");
      break;
    case Kind::kVarianceScaling:
      if (class_name == "VarianceScaling" || class_name == "variance_scaling") read_scaling(config, result);
      break;
    case Kind::kOrthogonal:
    case Kind::kIdentity:
      result.gain = config.number("gain", result.gain);
      break;
  }
}

bool names_float(const std::string& name) {
  return name == "float64" || name == "float16" || name == "bfloat16" || name == "mixed_float16" || name == "mixed_bfloat16";
}

}  // namespace

void at_place(const std::string& place, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find(place) != std::string::npos) throw;
    const size_t cut = text.find("; ");
    throw Error(error.kind(), text.substr(0, cut), place, cut == std::string::npos ? "" : text.substr(cut + 2));
  }
}

Object read_object(const Json& value, const std::string& what, const std::string& place) {
  if (value.is_string()) return {value.get<std::string>()};
  const auto class_name = value.is_object() ? value.find("class_name") : value.end();
  if (!value.is_object() || class_name == value.end() || !class_name->is_string()) {
    usage_error(fmt::format("'{}' is {}", what, shown(value)), place, "give a name, or an object with 'class_name' and 'config'");
  }
  const std::string name = class_name->get<std::string>();
  const Json module = value.value("module", Json("keras")), registered = value.value("registered_name", Json());
  const std::string package = module.is_string() ? module.get<std::string>() : "";
  const bool keras = package == "keras" || package.starts_with("keras.") || package == "builtins";
  if (!keras || (registered.is_string() && registered.get<std::string>().find('>') != std::string::npos)) {
    usage_error(
        fmt::format("'{}' is {}, a class of its author, not of Keras", what, shown(registered.is_string() ? registered : Json(name))),
        place, "replace it by one of Keras' own");
  }
  const Json config = value.value("config", Json::object());
  // Functions are written as {"class_name": "function", "config": "relu"}.
  if (name == "function" && config.is_string()) return {config.get<std::string>()};
  return {name, config.is_object() ? config : Json::object()};
}

nn::ActivationFunction read_activation(Fields& fields, const std::string& name) {
  const Json* value = fields.find(name);
  if (!value) return {};
  const std::string place = part_of(fields, name);
  return activation_from(read_object(*value, name, fields.place()), place);
}

std::optional<int64_t> read_seed(Fields& fields, const std::string& name) {
  const Json* value = fields.find(name);
  if (!value) return std::nullopt;
  if (!value->is_object()) return fields.integer(name, std::nullopt, INT64_MIN, INT64_MAX);
  const Object generator = read_object(*value, name, fields.place());
  Fields config(generator.config, part_of(fields, name));
  const bool given = config.find("seed") != nullptr;
  return given ? std::optional(config.integer("seed", std::nullopt, INT64_MIN, INT64_MAX)) : std::nullopt;
}

nn::Initializer read_initializer(Fields& fields, const std::string& name, const nn::Initializer& fallback) {
  const Json* value = fields.find(name);
  if (!value) return fallback;
  Object object = read_object(*value, name, fields.place());
  if (object.class_name == "OrthogonalInitializer") object.class_name = "Orthogonal";  // up to Keras 3.6
  if (object.class_name == "IdentityInitializer") object.class_name = "Identity";
  const std::string place = part_of(fields, name);
  nn::Initializer result;
  at_place(place, [&] { result = nn::Initializer(object.class_name); });
  Fields config(object.config, place);
  config.require("input_axes", {});
  config.require("output_axes", {});
  read_parameters(config, object.class_name, result);
  result.seed = read_seed(config);
  config.finish();
  return result;
}

nn::Regularizer read_regularizer(Fields& fields, const std::string& name) {
  const Json* value = fields.find(name);
  if (!value) return {};
  const Object object = read_object(*value, name, fields.place());
  const std::string place = part_of(fields, name);
  nn::Regularizer result;
  at_place(place, [&] { result = nn::Regularizer(object.class_name); });
  Fields config(object.config, place);
  if (value->is_object()) {
    const double l1 = config.number("l1", result.l1), l2 = config.number("l2", result.l2);
    at_place(place, [&] { result = nn::Regularizer(l1, l2); });
  }
  config.finish();
  return result;
}

void refuse_constraint(Fields& fields, const std::string& name) {
  const Json* value = fields.find(name);
  if (!value) return;
  const Object object = read_object(*value, name, fields.place());
  usage_error(fmt::format("'{}' is '{}', and Espalier has no constraints", name, object.class_name), fields.place(), "give null");
}

void read_dtype(Fields& fields, std::vector<std::string>& warnings) {
  const Json* value = fields.find("dtype");
  if (!value) return;
  const Object object = read_object(*value, "dtype", fields.place());
  const std::string name = value->is_string()                                  ? object.class_name
                           : object.config.value("name", Json("")).is_string() ? object.config.value("name", std::string())
                                                                               : "";
  if (value->is_object() && object.class_name != "DTypePolicy") {
    usage_error(fmt::format("'dtype' is '{}', which Espalier does not have", object.class_name), fields.place(), "use float32");
  }
  if (name == "float32") return;
  if (!names_float(name)) fields.wrong("dtype", name, "use float32");
  warnings.push_back(fmt::format("'dtype' is '{}', and Espalier computes in float32: {}", name, fields.place()));
}

}  // namespace espalier::keras

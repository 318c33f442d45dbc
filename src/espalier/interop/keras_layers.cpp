#include "espalier/interop/keras_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "espalier/base/error.h"
#include "espalier/base/nearest.h"
#include "espalier/interop/keras_objects.h"
#include "espalier/nn/layers.h"

namespace espalier::keras {
namespace {

constexpr int64_t kMaxAxis = kMaxRank;  // either way; whether the input has the axis shows at the call

// What a line of the table gets: the config, and the name.
struct Source {
  Fields& fields;
  const std::string& name;
  const Layer& layer;
};

using Make = nn::Layer (*)(const Source&);

nn::Layer dense(const Source& source) {
  Fields& fields = source.fields;
  nn::DenseConfig config;
  config.name = source.name;
  config.activation = read_activation(fields, "activation");
  config.use_bias = fields.truth("use_bias", true);
  config.kernel_initializer = read_initializer(fields, "kernel_initializer", config.kernel_initializer);
  config.bias_initializer = read_initializer(fields, "bias_initializer", config.bias_initializer);
  config.kernel_regularizer = read_regularizer(fields, "kernel_regularizer");
  config.bias_regularizer = read_regularizer(fields, "bias_regularizer");
  config.activity_regularizer = read_regularizer(fields, "activity_regularizer");
  refuse_constraint(fields, "kernel_constraint");
  refuse_constraint(fields, "bias_constraint");
  fields.require("lora_rank", {});
  fields.require("quantization_config", {});
  return nn::Dense(fields.integer("units", std::nullopt, 1, kMaxSize), config);
}

nn::Layer activation(const Source& source) { return nn::Activation(read_activation(source.fields, "activation"), {.name = source.name}); }

nn::Layer relu(const Source& source) {
  nn::ReLUConfig config{.name = source.name};
  if (source.fields.find("max_value")) config.max_value = source.fields.number("max_value", std::nullopt);
  config.negative_slope = source.fields.number("negative_slope", 0);
  config.threshold = source.fields.number("threshold", 0);
  return nn::ReLU(config);
}

nn::Layer leaky_relu(const Source& source) { return nn::LeakyReLU(source.fields.number("negative_slope", 0.3), {.name = source.name}); }

nn::Layer elu(const Source& source) { return nn::ELU(source.fields.number("alpha", 1), {.name = source.name}); }

nn::Layer softmax(const Source& source) {
  const auto axes = source.fields.integers("axis", -kMaxAxis, kMaxAxis);
  if (axes.size() > 1) source.fields.wrong("axis", axes, "give one axis");
  return nn::Softmax({.axis = axes.empty() ? -1 : axes[0], .name = source.name});
}

nn::Layer dropout(const Source& source) {
  source.fields.require("noise_shape", {Json::array()});
  const double rate = source.fields.number("rate", std::nullopt);
  return nn::Dropout(rate, {.seed = read_seed(source.fields), .name = source.name});
}

nn::Layer flatten(const Source& source) {
  const std::string format = source.fields.word("data_format", "channels_last");
  if (format != "channels_last" && format != "channels_first") {
    source.fields.wrong("data_format", format, "give 'channels_last' or 'channels_first'");
  }
  return nn::Flatten(
      {.data_format = format == "channels_last" ? nn::DataFormat::kChannelsLast : nn::DataFormat::kChannelsFirst, .name = source.name});
}

nn::Layer reshape(const Source& source) {
  const auto target = source.fields.integers("target_shape", -1, kMaxSize);
  if (target.size() >= static_cast<size_t>(kMaxRank)) {
    source.fields.wrong("target_shape", target, fmt::format("a sample has at most {} dims", kMaxRank - 1));
  }
  return nn::Reshape(Dims(target), {.name = source.name});
}

nn::Layer rescaling(const Source& source) {
  return nn::Rescaling(source.fields.number("scale", std::nullopt), {.offset = source.fields.number("offset", 0), .name = source.name});
}

// Numbers in lists of any depth, row-major; a single number is a list of one.
void collect_numbers(const Json& value, std::vector<double>& into, const Fields& fields, const std::string& name) {
  if (value.is_array()) {
    for (const Json& one : value) collect_numbers(one, into, fields, name);
  } else if (value.is_number()) {
    into.push_back(value.get<double>());
  } else {
    fields.wrong(name, value, "give a number or a list of numbers");
  }
}

std::optional<std::vector<double>> numbers(Fields& fields, const std::string& name) {
  const Json* value = fields.find(name);
  if (!value) return std::nullopt;
  std::vector<double> result;
  collect_numbers(*value, result, fields, name);
  return result;
}

nn::Layer normalization(const Source& source) {
  Fields& fields = source.fields;
  nn::NormalizationConfig config{.name = source.name};
  // null is one mean for everything, a missing field the default.
  const bool given = fields.find("axis") != nullptr;
  if (given) {
    config.axis = fields.integers("axis", -kMaxAxis, kMaxAxis);
  } else if (source.layer.config.contains("axis")) {
    config.axis = std::nullopt;
  }
  config.mean = numbers(fields, "mean");
  config.variance = numbers(fields, "variance");
  config.invert = fields.truth("invert", false);
  return nn::Normalization(config);
}

nn::Layer batch_normalization(const Source& source) {
  Fields& fields = source.fields;
  nn::BatchNormalizationConfig config;
  config.name = source.name;
  const auto axes = fields.integers("axis", -kMaxAxis, kMaxAxis);
  if (axes.size() > 1) fields.wrong("axis", axes, "give one axis");
  if (!axes.empty()) config.axis = axes[0];
  config.momentum = fields.number("momentum", config.momentum);
  config.epsilon = fields.number("epsilon", config.epsilon);
  config.center = fields.truth("center", true);
  config.scale = fields.truth("scale", true);
  config.beta_initializer = read_initializer(fields, "beta_initializer", config.beta_initializer);
  config.gamma_initializer = read_initializer(fields, "gamma_initializer", config.gamma_initializer);
  config.moving_mean_initializer = read_initializer(fields, "moving_mean_initializer", config.moving_mean_initializer);
  config.moving_variance_initializer = read_initializer(fields, "moving_variance_initializer", config.moving_variance_initializer);
  config.beta_regularizer = read_regularizer(fields, "beta_regularizer");
  config.gamma_regularizer = read_regularizer(fields, "gamma_regularizer");
  refuse_constraint(fields, "beta_constraint");
  refuse_constraint(fields, "gamma_constraint");
  fields.require("renorm", {false});
  fields.require("virtual_batch_size", {});
  // Statistics are always of the whole batch, so both values mean the same; the others belong to renorm.
  fields.skip({"synchronized", "renorm_clipping", "renorm_momentum"});
  return nn::BatchNormalization(config);
}

nn::Layer layer_normalization(const Source& source) {
  Fields& fields = source.fields;
  nn::LayerNormalizationConfig config;
  config.name = source.name;
  if (fields.find("axis")) config.axis = fields.integers("axis", -kMaxAxis, kMaxAxis);
  config.epsilon = fields.number("epsilon", config.epsilon);
  config.center = fields.truth("center", true);
  config.scale = fields.truth("scale", true);
  config.beta_initializer = read_initializer(fields, "beta_initializer", config.beta_initializer);
  config.gamma_initializer = read_initializer(fields, "gamma_initializer", config.gamma_initializer);
  config.beta_regularizer = read_regularizer(fields, "beta_regularizer");
  config.gamma_regularizer = read_regularizer(fields, "gamma_regularizer");
  refuse_constraint(fields, "beta_constraint");
  refuse_constraint(fields, "gamma_constraint");
  fields.require("rms_scaling", {false});
  return nn::LayerNormalization(config);
}

template <class Merge>
nn::Layer merge(const Source& source) {
  return Merge({.name = source.name});
}

nn::Layer concatenate(const Source& source) {
  return nn::Concatenate({.axis = source.fields.integer("axis", -1, -kMaxAxis, kMaxAxis), .name = source.name});
}

// Operations on tensors (x + y, x * 2). With a number they are a Rescaling; shapes of two tensors are checked at the call.
nn::Layer rescaled(const Source& source, double scale, double offset) {
  return nn::Rescaling(scale, {.offset = offset, .name = source.name});
}

const Call& only_call(const Source& source) {
  if (source.layer.calls.size() != 1) usage_error("an operation is called more than once", source.fields.place(), "write the model again");
  return source.layer.calls[0];
}

nn::Layer operation_add(const Source& source) {
  const Call& call = only_call(source);
  return call.constant ? rescaled(source, 1, *call.constant) : merge<nn::Add>(source);
}

nn::Layer operation_multiply(const Source& source) {
  const Call& call = only_call(source);
  return call.constant ? rescaled(source, *call.constant, 0) : merge<nn::Multiply>(source);
}

nn::Layer operation_subtract(const Source& source) {
  const Call& call = only_call(source);
  if (!call.constant) return merge<nn::Subtract>(source);
  return call.constant_first ? rescaled(source, -1, *call.constant) : rescaled(source, 1, -*call.constant);
}

nn::Layer operation_divide(const Source& source) {
  const Call& call = only_call(source);
  if (!call.constant || call.constant_first || *call.constant == 0) {
    usage_error("only a division by a number other than 0 can be read", source.fields.place(), "use keras.layers.Rescaling");
  }
  return rescaled(source, 1 / *call.constant, 0);
}

const std::map<std::string, Make>& table() {
  static const std::map<std::string, Make> kTable = {
      {"Activation", activation},
      {"Add", merge<nn::Add>},
      {"Average", merge<nn::Average>},
      {"BatchNormalization", batch_normalization},
      {"Concatenate", concatenate},
      {"Dense", dense},
      {"Dropout", dropout},
      {"ELU", elu},
      {"Flatten", flatten},
      {"LayerNormalization", layer_normalization},
      {"LeakyReLU", leaky_relu},
      {"Maximum", merge<nn::Maximum>},
      {"Minimum", merge<nn::Minimum>},
      {"Multiply", merge<nn::Multiply>},
      {"Normalization", normalization},
      {"ReLU", relu},
      {"Rescaling", rescaling},
      {"Reshape", reshape},
      {"Softmax", softmax},
      {"Subtract", merge<nn::Subtract>},
      {"operation Add", operation_add},
      {"operation Divide", operation_divide},
      {"operation Maximum", merge<nn::Maximum>},
      {"operation Minimum", merge<nn::Minimum>},
      {"operation Multiply", operation_multiply},
      {"operation Subtract", operation_subtract},
      {"operation TrueDivide", operation_divide},
  };
  return kTable;
}

}  // namespace

std::vector<std::string> known_layers() {
  std::vector<std::string> names;
  for (const auto& [name, make] : table()) {
    if (!name.starts_with("operation ")) names.push_back(name);
  }
  return names;
}

nn::Layer make_layer(const Layer& layer, const std::string& place, std::vector<std::string>& warnings) {
  const auto line = table().find(layer.class_name);
  if (line == table().end()) {
    const std::string near = nearest(layer.class_name, known_layers());
    usage_error(fmt::format("'{}' is not a layer that Espalier has", layer.class_name), place,
                near.empty() ? fmt::format("it has {}", fmt::join(known_layers(), ", ")) : fmt::format("did you mean '{}'?", near));
  }
  Fields fields(layer.config, place);
  fields.skip({"name", "batch_shape", "build_input_shape"});
  read_dtype(fields, warnings);
  const bool trainable = fields.truth("trainable", true);
  std::optional<nn::Layer> made;
  made.emplace(line->second({fields, layer.name, layer}));
  fields.finish();
  if (!trainable) made->freeze();
  return *made;
}

}  // namespace espalier::keras

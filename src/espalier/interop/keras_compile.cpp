#include "espalier/interop/keras_compile.h"

#include <fmt/format.h>

#include "espalier/base/error.h"
#include "espalier/interop/keras_fields.h"
#include "espalier/interop/keras_objects.h"

namespace espalier::keras {
namespace {

std::optional<double> optional_number(Fields& fields, const std::string& name) {
  const bool given = fields.find(name) != nullptr;
  return given ? std::optional(fields.number(name, std::nullopt)) : std::nullopt;
}

double learning_rate_of(Fields& fields, double fallback) {
  const Json* value = fields.find("learning_rate");
  if (value && value->is_object()) {
    const Object schedule = read_object(*value, "learning_rate", fields.place());
    usage_error(fmt::format("'learning_rate' is the schedule '{}', which Espalier does not have", schedule.class_name), fields.place(),
                "give a number, or --learning-rate");
  }
  return fields.number("learning_rate", fallback);
}

nn::Optimizer read_optimizer(const Json& value, const std::string& place) {
  const Object object = read_object(value, "optimizer", place);
  std::optional<nn::Optimizer> optimizer;
  at_place(place, [&] { optimizer.emplace(object.class_name); });
  Fields fields(object.config, fmt::format("{}, '{}'", place, object.class_name));
  optimizer->learning_rate = learning_rate_of(fields, optimizer->learning_rate);
  if (fields.find("weight_decay")) optimizer->weight_decay = optional_number(fields, "weight_decay");
  optimizer->clipnorm = optional_number(fields, "clipnorm");
  optimizer->global_clipnorm = optional_number(fields, "global_clipnorm");
  optimizer->clipvalue = optional_number(fields, "clipvalue");
  if (optimizer->kind == nn::Optimizer::Kind::kSgd) {
    optimizer->momentum = fields.number("momentum", 0);
    optimizer->nesterov = fields.truth("nesterov", false);
  } else {
    optimizer->beta_1 = fields.number("beta_1", optimizer->beta_1);
    optimizer->beta_2 = fields.number("beta_2", optimizer->beta_2);
    optimizer->epsilon = fields.number("epsilon", optimizer->epsilon);
    fields.require("amsgrad", {false});
  }
  fields.require("use_ema", {false});
  fields.require("loss_scale_factor", {});
  fields.require("gradient_accumulation_steps", {1});
  fields.skip({"name", "ema_momentum", "ema_overwrite_frequency", "jit_compile", "is_legacy_optimizer"});
  fields.finish();
  at_place(fields.place(), [&] { nn::check_optimizer(*optimizer); });
  return *optimizer;
}

// Without weights of samples, which do not exist here, the means are one and the same.
nn::LossReduction read_reduction(Fields& fields) {
  const std::string reduction = fields.word("reduction", "sum_over_batch_size");
  if (reduction == "sum") return nn::LossReduction::kSum;
  if (reduction != "sum_over_batch_size" && reduction != "mean" && reduction != "mean_with_sample_weight" && reduction != "auto") {
    fields.wrong("reduction", reduction, "give 'sum_over_batch_size' or 'sum'");
  }
  return nn::LossReduction::kSumOverBatchSize;
}

// What losses and the metrics made of them have in common.
void read_loss_fields(Fields& fields, nn::Loss& loss) {
  using Kind = nn::Loss::Kind;
  const bool classes = loss.kind == Kind::kSparseCategoricalCrossentropy || loss.kind == Kind::kCategoricalCrossentropy ||
                       loss.kind == Kind::kBinaryCrossentropy;
  if (classes) {
    loss.from_logits = fields.truth("from_logits", false);
    fields.require("axis", {-1});
    fields.require("ignore_class", {});
    loss.label_smoothing = fields.number("label_smoothing", 0);
    const bool fits = loss.label_smoothing >= 0 && loss.label_smoothing <= 1;
    if (!fits) fields.wrong("label_smoothing", loss.label_smoothing, "give a number from 0 to 1");
    if (loss.kind == Kind::kSparseCategoricalCrossentropy) fields.require("label_smoothing", {0, 0.0});
  }
  if (loss.kind == Kind::kHuber) loss.delta = fields.number("delta", 1);
  if (!(loss.delta > 0)) fields.wrong("delta", loss.delta, "give a number above 0");
}

nn::Loss read_loss(const Json& value, const std::string& place) {
  const Object object = read_object(value, "loss", place);
  std::optional<nn::Loss> loss;
  at_place(place, [&] { loss.emplace(object.class_name); });
  Fields fields(object.config, fmt::format("{}, '{}'", place, object.class_name));
  loss->name = fields.word("name", loss->name);
  loss->reduction = read_reduction(fields);
  read_loss_fields(fields, *loss);
  fields.skip({"dtype"});
  fields.finish();
  return *loss;
}

nn::Metric read_metric(const Json& value, const std::string& place) {
  const Object object = read_object(value, "metrics", place);
  if (object.class_name == "Accuracy" && value.is_object()) {
    usage_error("the metric 'Accuracy' asks for outputs equal to the targets, which Espalier does not have", place,
                "'accuracy' asks for the right class");
  }
  std::optional<nn::Metric> metric;
  at_place(place, [&] { metric.emplace(object.class_name); });
  Fields fields(object.config, fmt::format("{}, '{}'", place, object.class_name));
  metric->name = fields.word("name", metric->name);
  if (metric->kind == nn::Metric::Kind::kBinaryAccuracy) metric->threshold = fields.number("threshold", metric->threshold);
  if (metric->loss) read_loss_fields(fields, *metric->loss);
  fields.skip({"dtype"});
  fields.finish();
  return *metric;
}

// A dict by output name, as opposed to an object of Keras.
bool is_dict(const Json& value) { return value.is_object() && !value.contains("class_name"); }

nn::Losses read_losses(const Json& value, const std::string& place) {
  if (is_dict(value)) {
    std::map<std::string, nn::Loss> by_name;
    for (const auto& [name, one] : value.items()) {
      if (!one.is_null()) by_name.emplace(name, read_loss(one, place));
    }
    return by_name;
  }
  if (!value.is_array()) return read_loss(value, place);
  std::vector<std::optional<nn::Loss>> list;
  for (const Json& one : value) list.push_back(one.is_null() ? std::nullopt : std::optional(read_loss(one, place)));
  return list;
}

nn::LossWeights read_loss_weights(Fields& fields) {
  const Json* value = fields.find("loss_weights");
  if (!value) return {};
  const auto number = [&](const Json& one) {
    if (!one.is_number()) fields.wrong("loss_weights", *value, "give numbers");
    return one.get<double>();
  };
  if (value->is_object()) {
    std::map<std::string, double> by_name;
    for (const auto& [name, one] : value->items()) by_name.emplace(name, number(one));
    return by_name;
  }
  if (!value->is_array()) return std::vector<double>{number(*value)};
  std::vector<double> list;
  for (const Json& one : *value) list.push_back(number(one));
  return list;
}

// One metric, a list of them, or null.
std::vector<nn::Metric> read_metric_list(const Json& value, const std::string& place) {
  std::vector<nn::Metric> result;
  if (value.is_null()) return result;
  if (!value.is_array()) return {read_metric(value, place)};
  for (const Json& one : value) {
    const auto inner = read_metric_list(one, place);
    result.insert(result.end(), inner.begin(), inner.end());
  }
  return result;
}

nn::Metrics read_metrics(const Json& value, const std::string& place) {
  if (is_dict(value)) {
    std::map<std::string, std::vector<nn::Metric>> by_name;
    for (const auto& [name, one] : value.items()) by_name.emplace(name, read_metric_list(one, place));
    return by_name;
  }
  if (!value.is_array()) return read_metric_list(value, place);
  std::vector<std::vector<nn::Metric>> list;
  for (const Json& one : value) list.push_back(read_metric_list(one, place));
  return list;
}

// What the caller replaces is read as far as it can be: an Adam of the command line takes its rate from an Adam of the file.
template <class Read>
void read_part(bool replaced, const Read& read) {
  try {
    read();
  } catch (const Error&) {
    if (!replaced) throw;
  }
}

}  // namespace

std::optional<nn::Compilation> read_compilation(const Json& source, const nn::Model& model, const std::string& where,
                                                const KerasReplaced& replaced, std::vector<std::string>& warnings) {
  const std::string place = fmt::format("'{}', 'compile_config'", where);
  const auto section = source.find("compile_config");
  if (section == source.end() || section->is_null() || section->empty()) return std::nullopt;
  if (!section->is_object())
    usage_error(fmt::format("'compile_config' is {}", shown(*section)), fmt::format("'{}'", where), "give an object");
  Fields fields(*section, place);
  nn::Compilation result;
  const Json* optimizer = fields.find("optimizer");
  if (!optimizer && !replaced.optimizer) warnings.push_back(fmt::format("no 'optimizer' is given, and SGD is used: {}", place));
  if (optimizer) read_part(replaced.optimizer, [&] { result.optimizer = read_optimizer(*optimizer, place); });
  const Json *loss = fields.find("loss"), *metrics = fields.find("metrics");
  if (loss) read_part(replaced.loss, [&] { result.loss = read_losses(*loss, place); });
  read_part(replaced.loss, [&] { result.loss_weights = read_loss_weights(fields); });
  if (metrics) read_part(replaced.metrics, [&] { result.metrics = read_metrics(*metrics, place); });
  fields.require("weighted_metrics", {Json::array()});
  fields.skip({"loss_weights", "run_eagerly", "steps_per_execution", "jit_compile", "auto_scale_loss", "sample_weight_mode"});
  fields.finish();
  if (model.built()) at_place(place, [&] { nn::resolve(result, model.output_names()); });
  return result;
}

}  // namespace espalier::keras

#include "espalier/cli/training_options.h"

#include <fmt/format.h>

#include "espalier/base/error.h"
#include "espalier/base/nearest.h"
#include "espalier/cli/values.h"

namespace espalier::cli {
namespace {

nn::Optimizer optimizer_of(const Options& options, const std::optional<nn::Compilation>& file) {
  nn::Optimizer optimizer = nn::SGD();
  if (options.optimizer) optimizer = nn::Optimizer(*options.optimizer);
  if (file && (!options.optimizer || file->optimizer.kind == optimizer.kind)) optimizer = file->optimizer;
  const std::string name = nn::class_name(optimizer.kind);
  if (optimizer.kind != nn::Optimizer::Kind::kSgd && (options.momentum.value_or(0) != 0 || options.nesterov.value_or(false)))
    usage_error(fmt::format("{} has no momentum", name), "--momentum, --nesterov", "leave them out, or give --optimizer sgd");
  if (options.learning_rate) optimizer.learning_rate = *options.learning_rate;
  if (options.momentum) optimizer.momentum = *options.momentum;
  if (options.nesterov) optimizer.nesterov = *options.nesterov;
  if (options.weight_decay) optimizer.weight_decay = *options.weight_decay;
  nn::check_optimizer(optimizer);
  return optimizer;
}

// "mse", or "left=mse,right=mae".
nn::Losses losses_of(const std::string& word, const std::vector<std::string>& outputs) {
  if (word.find('=') == std::string::npos) {
    if (outputs.size() == 1) return nn::Losses(word);
    return nn::Losses(std::vector<std::optional<nn::Loss>>(outputs.size(), nn::Loss(word)));
  }
  std::map<std::string, nn::Loss> by_name;
  for (const std::string& entry : read_list("--loss", word)) {
    size_t equals = entry.find('=');
    if (equals == std::string::npos) usage_error(fmt::format("'{}' names no output", entry), "--loss", "write output=loss for each");
    if (!by_name.emplace(entry.substr(0, equals), nn::Loss(entry.substr(equals + 1))).second)
      usage_error(fmt::format("output '{}' is given two losses", entry.substr(0, equals)), "--loss", "give it one");
  }
  return nn::Losses(std::move(by_name));
}

nn::Metrics metrics_of(const std::vector<std::string>& names, size_t outputs) {
  std::vector<nn::Metric> metrics(names.begin(), names.end());
  return outputs == 1 ? nn::Metrics(metrics) : nn::Metrics(std::vector<std::vector<nn::Metric>>(outputs, metrics));
}

}  // namespace

nn::Compilation compilation_of(const Options& options, const std::optional<nn::Compilation>& file, const nn::Model& model) {
  nn::Compilation compilation = file.value_or(nn::Compilation{});
  const std::vector<std::string> outputs = model.output_names();
  compilation.optimizer = optimizer_of(options, file);
  if (options.loss) compilation.loss = losses_of(*options.loss, outputs);
  if (options.metrics) compilation.metrics = metrics_of(*options.metrics, outputs.size());
  nn::resolve(compilation, outputs);  // names of outputs are checked before anything is compiled
  return compilation;
}

}  // namespace espalier::cli

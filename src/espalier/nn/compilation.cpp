#include "espalier/nn/compilation.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/base/nearest.h"
#include "espalier/base/text.h"

namespace espalier::nn {

namespace {

using Outputs = std::vector<OutputCompilation>;

OutputCompilation& output_named(Outputs& outputs, const std::string& name, const char* what) {
  std::vector<std::string> names;
  for (OutputCompilation& output : outputs) {
    if (output.name == name) return output;
    names.push_back(output.name);
  }
  usage_error(fmt::format("there is no output '{}'", name), what, suggest(name, names));
}

void check_length(const Outputs& outputs, size_t length, const char* what) {
  if (length == outputs.size()) return;
  std::string names;
  for (const OutputCompilation& output : outputs) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", output.name);
  usage_error(fmt::format("{} has {} entries for {}", what, length, counted(std::ssize(outputs), "output")), "",
              fmt::format("give one for each of {}, or name the outputs", names));
}

void resolve_losses(const Losses& losses, Outputs& outputs) {
  if (losses.list.size() == 1) {
    for (OutputCompilation& output : outputs) output.loss = losses.list.front();
  } else if (!losses.list.empty()) {
    check_length(outputs, losses.list.size(), "loss");
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].loss = losses.list[i];
  }
  for (const auto& [name, loss] : losses.by_name) output_named(outputs, name, "loss").loss = loss;
}

void resolve_weights(const LossWeights& weights, Outputs& outputs) {
  if (!weights.list.empty()) {
    check_length(outputs, weights.list.size(), "loss_weights");
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].weight = weights.list[i];
  }
  for (const auto& [name, weight] : weights.by_name) output_named(outputs, name, "loss_weights").weight = weight;
}

void resolve_metrics(const Metrics& metrics, Outputs& outputs) {
  if (outputs.size() == 1) {
    for (const auto& entry : metrics.list) outputs[0].metrics.insert(outputs[0].metrics.end(), entry.begin(), entry.end());
  } else if (!metrics.list.empty()) {
    check_length(outputs, metrics.list.size(), "metrics");
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].metrics = metrics.list[i];
  }
  for (const auto& [name, list] : metrics.by_name) output_named(outputs, name, "metrics").metrics = list;
}

}  // namespace

std::vector<OutputCompilation> resolve(const Compilation& compilation, const std::vector<std::string>& names) {
  Outputs outputs;
  for (const std::string& name : names) outputs.push_back({.name = name});
  resolve_losses(compilation.loss, outputs);
  resolve_weights(compilation.loss_weights, outputs);
  resolve_metrics(compilation.metrics, outputs);
  return outputs;
}

}  // namespace espalier::nn

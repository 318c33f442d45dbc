#pragma once
// What a model is trained with: `compile(optimizer, loss, metrics)` of Keras as a value.
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "espalier/nn/losses.h"
#include "espalier/nn/metrics.h"
#include "espalier/nn/optimizers.h"

namespace espalier::nn {

// One loss for every output, one for each in order (nullopt: none), or some by output name.
struct Losses {
  std::vector<std::optional<Loss>> list = {};
  std::map<std::string, Loss> by_name = {};

  Losses() = default;
  Losses(Loss loss) : list{std::move(loss)} {}                                  // NOLINT
  Losses(const char* name) : Losses(Loss(name)) {}                              // NOLINT
  Losses(const std::string& name) : Losses(Loss(name)) {}                       // NOLINT
  Losses(std::vector<std::optional<Loss>> losses) : list(std::move(losses)) {}  // NOLINT
  Losses(std::map<std::string, Loss> losses) : by_name(std::move(losses)) {}    // NOLINT
  bool empty() const { return list.empty() && by_name.empty(); }
};

struct LossWeights {
  std::vector<double> list = {};
  std::map<std::string, double> by_name = {};

  LossWeights() = default;
  LossWeights(std::vector<double> weights) : list(std::move(weights)) {}               // NOLINT
  LossWeights(std::map<std::string, double> weights) : by_name(std::move(weights)) {}  // NOLINT
};

// Of a model with one output: all of `list`. Of several: entry i of `list` is for output i, or `by_name`.
struct Metrics {
  std::vector<std::vector<Metric>> list = {};
  std::map<std::string, std::vector<Metric>> by_name = {};

  Metrics() = default;
  Metrics(const std::vector<Metric>& metrics) {  // NOLINT
    for (const Metric& metric : metrics) list.push_back({metric});
  }
  Metrics(std::initializer_list<Metric> metrics) : Metrics(std::vector<Metric>(metrics)) {}
  Metrics(std::vector<std::vector<Metric>> metrics) : list(std::move(metrics)) {}               // NOLINT
  Metrics(std::map<std::string, std::vector<Metric>> metrics) : by_name(std::move(metrics)) {}  // NOLINT
};

struct Compilation {
  Optimizer optimizer = SGD();  // Keras' own default, RMSprop, is not here
  Losses loss = {};
  LossWeights loss_weights = {};
  Metrics metrics = {};
};

// The part of a compilation that concerns one output.
struct OutputCompilation {
  std::string name;
  std::optional<Loss> loss = {};
  double weight = 1;
  std::vector<Metric> metrics = {};
};
// One entry an output, in order. Errors: a name that is no output (with the nearest), a list of another length than the outputs.
std::vector<OutputCompilation> resolve(const Compilation& compilation, const std::vector<std::string>& outputs);

}  // namespace espalier::nn

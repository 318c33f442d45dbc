#pragma once
// SGD, Adam and AdamW with Keras' defaults and formulas (keras/src/optimizers, Keras 3.15). An update is part of the step's graph; its
// state lives in slots named VARIABLE/momentum and, for Adam, VARIABLE/velocity, which have the layout of their variable.
// Not here: amsgrad, exponential moving averages, accumulation, loss scaling, schedules.
#include <optional>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier::nn {

struct Optimizer {
  enum class Kind { kSgd, kAdam, kAdamW };

  Optimizer(const char* name);         // NOLINT: "sgd", "adam", "adamw" in any case, with Keras' defaults. Errors: another name
  Optimizer(const std::string& name);  // NOLINT
  explicit Optimizer(Kind kind);

  Kind kind;
  double learning_rate;
  double momentum = 0;  // SGD
  bool nesterov = false;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;  // Adam, AdamW
  std::optional<double> weight_decay = {};
  // At most one. clipnorm: of each gradient; global_clipnorm: of all together, every logical element counted once.
  std::optional<double> clipnorm = {}, global_clipnorm = {}, clipvalue = {};
};

struct SGDConfig {
  double momentum = 0;
  bool nesterov = false;
  std::optional<double> weight_decay = {}, clipnorm = {}, global_clipnorm = {}, clipvalue = {};
};
struct SGD : Optimizer {
  explicit SGD(double learning_rate = 0.01, SGDConfig config = {});
};

struct AdamConfig {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  std::optional<double> weight_decay = {}, clipnorm = {}, global_clipnorm = {}, clipvalue = {};  // AdamW: weight_decay 0.004 unless given
};
struct Adam : Optimizer {
  explicit Adam(double learning_rate = 0.001, AdamConfig config = {});
};
struct AdamW : Optimizer {
  explicit AdamW(double learning_rate = 0.001, AdamConfig config = {});
};

// Errors: momentum, betas, epsilon or decay out of range; two ways of clipping.
void check_optimizer(const Optimizer& optimizer);

const char* class_name(Optimizer::Kind kind);                     // "SGD", "Adam", "AdamW"
std::vector<std::string> slot_names(const Optimizer& optimizer);  // "momentum", "velocity"; none for plain SGD

// One variable's part of the update: its value and gradient (of its shape or scalar), and its slots in the order of slot_names.
struct UpdateTarget {
  ValueId variable = kNoValue, gradient = kNoValue;
  std::vector<ValueId> slots = {};
  std::string scope = {};
};
// Scalars that an update reads; asked for only when needed.
struct UpdateScalars {
  ValueId learning_rate = kNoValue, step = kNoValue;  // step counts from 1; used by Adam only
};
// Clips, decays and updates: new value and slots of each target, in that order.
std::vector<std::vector<ValueId>> apply_updates(Builder& builder, const Optimizer& optimizer, const std::vector<UpdateTarget>& targets,
                                                const UpdateScalars& scalars);

}  // namespace espalier::nn

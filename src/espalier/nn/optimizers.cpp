#include "espalier/nn/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "espalier/base/nearest.h"
#include "espalier/nn/formula.h"

namespace espalier::nn {

namespace {

Optimizer::Kind optimizer_kind(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "sgd") return Optimizer::Kind::kSgd;
  if (lower == "adam") return Optimizer::Kind::kAdam;
  if (lower == "adamw") return Optimizer::Kind::kAdamW;
  usage_error(fmt::format("there is no optimizer '{}'", name), "", suggest(lower, {"sgd", "adam", "adamw"}));
}

void configure(Optimizer& optimizer, double learning_rate, const AdamConfig& config) {
  optimizer.learning_rate = learning_rate;
  optimizer.beta_1 = config.beta_1;
  optimizer.beta_2 = config.beta_2;
  optimizer.epsilon = config.epsilon;
  if (config.weight_decay) optimizer.weight_decay = config.weight_decay;
  optimizer.clipnorm = config.clipnorm;
  optimizer.global_clipnorm = config.global_clipnorm;
  optimizer.clipvalue = config.clipvalue;
  check_optimizer(optimizer);
}

}  // namespace

Optimizer::Optimizer(const char* name) : Optimizer(std::string(name)) {}
Optimizer::Optimizer(const std::string& name) : Optimizer(optimizer_kind(name)) {}

Optimizer::Optimizer(Kind given) : kind(given), learning_rate(given == Kind::kSgd ? 0.01 : 0.001) {
  if (kind == Kind::kAdamW) weight_decay = 0.004;
}

SGD::SGD(double rate, SGDConfig config) : Optimizer(Kind::kSgd) {
  learning_rate = rate;
  momentum = config.momentum;
  nesterov = config.nesterov;
  weight_decay = config.weight_decay;
  clipnorm = config.clipnorm;
  global_clipnorm = config.global_clipnorm;
  clipvalue = config.clipvalue;
  check_optimizer(*this);
}

Adam::Adam(double rate, AdamConfig config) : Optimizer(Kind::kAdam) { configure(*this, rate, config); }
AdamW::AdamW(double rate, AdamConfig config) : Optimizer(Kind::kAdamW) { configure(*this, rate, config); }

void check_optimizer(const Optimizer& optimizer) {
  std::string where = fmt::format("optimizer '{}'", class_name(optimizer.kind));
  auto refuse = [&](const char* name, double value, const char* todo) { usage_error(fmt::format("{} is {}", name, value), where, todo); };
  if (!(optimizer.learning_rate >= 0)) refuse("learning_rate", optimizer.learning_rate, "give 0 or more");
  if (!(optimizer.momentum >= 0 && optimizer.momentum <= 1)) refuse("momentum", optimizer.momentum, "give a number from 0 to 1");
  if (!(optimizer.beta_1 >= 0 && optimizer.beta_1 < 1)) refuse("beta_1", optimizer.beta_1, "give a number from 0 to below 1");
  if (!(optimizer.beta_2 >= 0 && optimizer.beta_2 < 1)) refuse("beta_2", optimizer.beta_2, "give a number from 0 to below 1");
  if (!(optimizer.epsilon > 0)) refuse("epsilon", optimizer.epsilon, "give a number above 0");
  if (!(optimizer.weight_decay.value_or(0) >= 0)) refuse("weight_decay", *optimizer.weight_decay, "give 0 or more");
  int ways = optimizer.clipnorm.has_value() + optimizer.global_clipnorm.has_value() + optimizer.clipvalue.has_value();
  if (ways > 1) usage_error("gradients are clipped in two ways", where, "give one of clipnorm, global_clipnorm, clipvalue");
}

const char* class_name(Optimizer::Kind kind) {
  switch (kind) {
    case Optimizer::Kind::kSgd:
      return "SGD";
    case Optimizer::Kind::kAdam:
      return "Adam";
    case Optimizer::Kind::kAdamW:
      return "AdamW";
  }
  return "";
}

std::vector<std::string> slot_names(const Optimizer& optimizer) {
  if (optimizer.kind != Optimizer::Kind::kSgd) return {"momentum", "velocity"};
  return optimizer.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum"};
}

namespace {

Formula squared_norm(Builder& builder, ValueId gradient) {
  return sum(square(Formula::of(gradient)), all_dims(builder.shape(gradient).rank()));
}

// Gradients after clipping, in the order of the targets. Keras: a norm or value that is not above 0 clips nothing.
std::vector<Formula> clipped(Builder& builder, const Optimizer& optimizer, const std::vector<UpdateTarget>& targets) {
  std::vector<Formula> gradients;
  for (const UpdateTarget& target : targets) gradients.push_back(Formula::of(target.gradient));
  if (double norm = optimizer.clipnorm.value_or(0); norm > 0) {
    for (size_t i = 0; i < targets.size(); ++i)
      gradients[i] = gradients[i] * (norm / maximum(unary("sqrt", squared_norm(builder, targets[i].gradient)), norm));
  } else if (double all = optimizer.global_clipnorm.value_or(0); all > 0) {
    Formula total = squared_norm(builder, targets.front().gradient);
    for (size_t i = 1; i < targets.size(); ++i) total = total + squared_norm(builder, targets[i].gradient);
    Formula factor = minimum(1 / unary("sqrt", total), 1 / all) * all;
    for (Formula& gradient : gradients) gradient = gradient * factor;
  } else if (double value = optimizer.clipvalue.value_or(0); value > 0) {
    for (Formula& gradient : gradients) gradient = clip(gradient, -value, value);
  }
  return gradients;
}

std::vector<ValueId> updated_by_sgd(Builder& builder, const Optimizer& optimizer, const UpdateTarget& target, const Formula& gradient,
                                    const UpdateScalars& scalars) {
  Formula w = Formula::of(target.variable), rate = Formula::of(scalars.learning_rate);
  if (double decay = optimizer.weight_decay.value_or(0); decay != 0) w = w - w * (rate * decay);
  ValueId weight = w.emit(builder), g = gradient.emit(builder);
  if (target.slots.empty()) return builder.ops("sgd_update", {weight, g, scalars.learning_rate});
  return builder.ops("momentum_update", {weight, target.slots[0], g, scalars.learning_rate},
                     {{"momentum", optimizer.momentum}, {"nesterov", int64_t{optimizer.nesterov}}});
}

}  // namespace

std::vector<std::vector<ValueId>> apply_updates(Builder& builder, const Optimizer& optimizer, const std::vector<UpdateTarget>& targets,
                                                const UpdateScalars& scalars) {
  std::vector<std::vector<ValueId>> results;
  if (targets.empty()) return results;
  std::vector<Formula> gradients = clipped(builder, optimizer, targets);
  ValueId rate = kNoValue;
  if (optimizer.kind != Optimizer::Kind::kSgd)
    rate = builder.op("adam_rate", {scalars.learning_rate, scalars.step}, {{"beta_1", optimizer.beta_1}, {"beta_2", optimizer.beta_2}});
  for (size_t i = 0; i < targets.size(); ++i) {
    const UpdateTarget& target = targets[i];
    builder.scope = target.scope;
    if (optimizer.kind == Optimizer::Kind::kSgd) {
      results.push_back(updated_by_sgd(builder, optimizer, target, gradients[i], scalars));
      continue;
    }
    results.push_back(builder.ops(
        "adam_update", {target.variable, target.slots[0], target.slots[1], gradients[i].emit(builder), rate, scalars.learning_rate},
        {{"beta_1", optimizer.beta_1},
         {"beta_2", optimizer.beta_2},
         {"epsilon", optimizer.epsilon},
         {"weight_decay", optimizer.weight_decay.value_or(0)}}));
  }
  builder.scope.clear();
  return results;
}

}  // namespace espalier::nn

#include "espalier/nn/activation.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "espalier/base/nearest.h"
#include "espalier/nn/formula.h"

namespace espalier::nn {

namespace {

using Function = Formula (*)(const ActivationFunction&, const Formula& x, int rank);

Formula sigmoid(const Formula& x) { return unary("sigmoid", x); }
// log(1 + exp x) without overflow; maximum and not relu, so that the gradient at 0 is 1/2.
Formula softplus(const Formula& x) { return maximum(x, 0) + unary("log1p", unary("exp", -unary("abs", x))); }
Formula relu6(const Formula& x) { return minimum(unary("relu", x), 6); }
Formula hard_sigmoid(const Formula& x) { return relu6(x + 3) / 6; }

// expm1 sees 0 where its result is not selected: it cannot overflow there, and the gradient at 0 is 1.
Formula elu(const Formula& x, double alpha) {
  Formula positive = greater(x, 0);
  return select(positive, x, unary("expm1", select(positive, 0, x)) * alpha);
}

// Klambauer et al., "Self-Normalizing Neural Networks", 2017: the constants of its fixed point.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;

Formula gelu(const Formula& x, bool approximate) {
  if (!approximate) return x * 0.5 * (unary("erf", x / std::numbers::sqrt2) + 1);
  Formula inner = (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi);
  return x * 0.5 * (unary("tanh", inner) + 1);
}

Formula sparse_plus(const Formula& x) { return select(greater(-1, x), 0, select(greater(x, 1), x, square(x + 1) / 4)); }

Formula shrink(const Formula& x, double threshold, double shift) {
  return select(greater(x, threshold), x - shift, select(greater(-threshold, x), x + shift, 0));
}

Dims last(int rank) { return Dims{rank - 1}; }

const std::map<std::string, Function>& functions() {
  using A = ActivationFunction;
  using F = Formula;
  static const std::map<std::string, Function> table = {
      {"linear", [](const A&, const F& x, int) { return x; }},
      {"relu", [](const A&, const F& x, int) { return unary("relu", x); }},
      {"relu6", [](const A&, const F& x, int) { return relu6(x); }},
      {"leaky_relu", [](const A& a, const F& x, int) { return select(greater(0, x), x * a.negative_slope, x); }},
      {"elu", [](const A& a, const F& x, int) { return elu(x, a.alpha); }},
      {"selu", [](const A&, const F& x, int) { return elu(x, kSeluAlpha) * kSeluScale; }},
      {"celu", [](const A& a, const F& x, int) { return maximum(x, 0) + unary("expm1", minimum(x, 0) / a.alpha) * a.alpha; }},
      {"silu", [](const A&, const F& x, int) { return x * sigmoid(x); }},
      {"swish", [](const A&, const F& x, int) { return x * sigmoid(x); }},
      {"gelu", [](const A& a, const F& x, int) { return gelu(x, a.approximate); }},
      {"sigmoid", [](const A&, const F& x, int) { return sigmoid(x); }},
      {"log_sigmoid", [](const A&, const F& x, int) { return -softplus(-x); }},
      {"sparse_sigmoid", [](const A&, const F& x, int) { return clip(x + 1, 0, 2) * 0.5; }},
      {"hard_sigmoid", [](const A&, const F& x, int) { return hard_sigmoid(x); }},
      {"hard_silu", [](const A&, const F& x, int) { return x * hard_sigmoid(x); }},
      {"hard_swish", [](const A&, const F& x, int) { return x * hard_sigmoid(x); }},
      {"tanh", [](const A&, const F& x, int) { return unary("tanh", x); }},
      {"hard_tanh", [](const A&, const F& x, int) { return clip(x, -1, 1); }},
      {"tanh_shrink", [](const A&, const F& x, int) { return x - unary("tanh", x); }},
      {"soft_shrink", [](const A& a, const F& x, int) { return shrink(x, a.threshold, a.threshold); }},
      {"hard_shrink", [](const A& a, const F& x, int) { return shrink(x, a.threshold, 0); }},
      {"softplus", [](const A&, const F& x, int) { return softplus(x); }},
      {"sparse_plus", [](const A&, const F& x, int) { return sparse_plus(x); }},
      {"squareplus", [](const A&, const F& x, int) { return (x + unary("sqrt", square(x) + 4)) / 2; }},
      {"softsign", [](const A&, const F& x, int) { return x / (unary("abs", x) + 1); }},
      {"exponential", [](const A&, const F& x, int) { return unary("exp", x); }},
      {"mish", [](const A&, const F& x, int) { return x * unary("tanh", softplus(x)); }},
      {"softmax",
       [](const A&, const F& x, int rank) {
         return Formula::op("softmax", {x}, {{"dim", int64_t{rank - 1}}});
       }},
      {"log_softmax", [](const A&, const F& x, int rank) { return x - logsumexp(x, last(rank), Keep::kYes); }},
  };
  return table;
}

}  // namespace

ActivationFunction::ActivationFunction(const char* given) : ActivationFunction(std::string(given)) {}

ActivationFunction::ActivationFunction(const std::string& given) : name(given) {
  if (functions().contains(name)) return;
  if (name == "glu" || name == "sparsemax" || name == "threshold")
    usage_error(fmt::format("activation '{}' of Keras is not supported", name), "", "choose another activation");
  std::vector<std::string> names;
  for (const auto& [known, function] : functions()) names.push_back(known);
  usage_error(fmt::format("there is no activation '{}'", name), "", suggest(name, names));
}

ValueId apply_activation(Builder& builder, const ActivationFunction& activation, ValueId x) {
  auto function = functions().find(activation.name);
  if (function == functions().end()) usage_error(fmt::format("there is no activation '{}'", activation.name), builder.scope);
  return function->second(activation, Formula::of(x), builder.shape(x).rank()).emit(builder);
}

}  // namespace espalier::nn

#include "espalier/nn/regularizer.h"

#include <fmt/format.h>

#include <cmath>

#include "espalier/base/nearest.h"
#include "espalier/nn/formula.h"

namespace espalier::nn {

Regularizer::Regularizer(double first, double second) : l1(first), l2(second) {
  for (double factor : {l1, l2})
    if (!std::isfinite(factor) || factor < 0)
      usage_error(fmt::format("a regularizer's factor is '{}'", factor), "", "give a number that is 0 or more");
}

Regularizer::Regularizer(const char* name) : Regularizer(std::string(name)) {}

Regularizer::Regularizer(const std::string& name) {
  if (name == "l1" || name == "L1")
    *this = L1();
  else if (name == "l2" || name == "L2")
    *this = L2();
  else if (name == "l1_l2" || name == "L1L2" || name == "l1l2")
    *this = L1L2();
  else
    usage_error(fmt::format("there is no regularizer '{}'", name), "", suggest(name, {"l1", "l2", "l1_l2"}));
}

std::optional<ValueId> penalty(Builder& builder, const Regularizer& regularizer, ValueId value) {
  if (regularizer.empty()) return std::nullopt;
  Formula w = Formula::of(value);
  Dims dims = all_dims(builder.shape(value).rank());
  std::optional<Formula> total;
  if (regularizer.l1 != 0) total = sum(unary("abs", w), dims) * regularizer.l1;
  if (regularizer.l2 != 0) {
    Formula term = sum(square(w), dims) * regularizer.l2;
    total = total ? *total + term : term;
  }
  return total->emit(builder);
}

}  // namespace espalier::nn

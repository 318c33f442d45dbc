#pragma once
// Keras' weight and activity regularisers: l1 * sum |w| + l2 * sum w^2, added to the loss.
#include <optional>
#include <string>

#include "espalier/ir/graph.h"

namespace espalier::nn {

struct Regularizer {
  double l1 = 0, l2 = 0;

  Regularizer() = default;               // none
  Regularizer(double l1, double l2);     // Error when one is negative or not finite
  Regularizer(const char* name);         // NOLINT: "l1", "l2", "l1_l2" and class names, with Keras' defaults
  Regularizer(const std::string& name);  // NOLINT

  bool empty() const { return l1 == 0 && l2 == 0; }
};

struct L1 : Regularizer {
  explicit L1(double l1 = 0.01) : Regularizer(l1, 0) {}
};
struct L2 : Regularizer {
  explicit L2(double l2 = 0.01) : Regularizer(0, l2) {}
};
struct L1L2 : Regularizer {
  explicit L1L2(double l1 = 0, double l2 = 0) : Regularizer(l1, l2) {}
};

// The penalty of a tensor, a scalar; nothing for an empty regulariser.
std::optional<ValueId> penalty(Builder& builder, const Regularizer& regularizer, ValueId value);

}  // namespace espalier::nn

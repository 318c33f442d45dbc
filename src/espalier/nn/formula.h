#pragma once
// Arithmetic on graph values that reads like the formula it implements: activations, losses, norms and updates are written with it.
// A Formula is a description; `emit` appends its ops, operands from left to right and a shared part once, so that every compiler writes
// the same graph. Numbers become `constant` ops; shapes broadcast as in numpy. A formula is emitted into one graph only.
#include <memory>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier::nn {

inline constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

class Formula {
 public:
  Formula(double constant);  // NOLINT: numbers stand in formulas as they are
  static Formula of(ValueId value);
  static Formula op(std::string name, std::vector<Formula> operands, Attrs attrs = {});

  ValueId emit(Builder& builder) const;

 private:
  struct Part;
  explicit Formula(std::shared_ptr<Part> part) : part_(std::move(part)) {}
  std::shared_ptr<Part> part_;
};

Formula operator+(const Formula& a, const Formula& b);
Formula operator-(const Formula& a, const Formula& b);
Formula operator*(const Formula& a, const Formula& b);
Formula operator/(const Formula& a, const Formula& b);
Formula operator-(const Formula& a);

// An op of one operand by its name: unary("tanh", x).
Formula unary(const std::string& name, const Formula& x);
Formula maximum(const Formula& a, const Formula& b);
Formula minimum(const Formula& a, const Formula& b);
Formula clip(const Formula& x, double low, double high);
Formula square(const Formula& x);
Formula greater(const Formula& a, const Formula& b);  // 1 or 0
Formula select(const Formula& condition, const Formula& a, const Formula& b);

enum class Keep { kNo, kYes };  // reduced dims stay as dims of size 1
Formula sum(const Formula& x, const Dims& dims, Keep keep = Keep::kNo);
Formula logsumexp(const Formula& x, const Dims& dims, Keep keep = Keep::kNo);
Formula reshape(const Formula& x, const Dims& shape);
Formula broadcast_scalar(const Formula& x, const Dims& shape);

// 0, 1, ..., rank-1.
Dims all_dims(int rank);

}  // namespace espalier::nn

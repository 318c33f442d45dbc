#include "espalier/nn/formula.h"

#include <optional>

namespace espalier::nn {

struct Formula::Part {
  std::string name;
  std::vector<Formula> operands;
  Attrs attrs;
  std::optional<ValueId> value;  // once emitted
};

Formula::Formula(double constant) : part_(std::make_shared<Part>(Part{"constant", {}, {{"value", constant}}, std::nullopt})) {}

Formula Formula::of(ValueId value) { return Formula(std::make_shared<Part>(Part{"", {}, {}, value})); }

Formula Formula::op(std::string name, std::vector<Formula> operands, Attrs attrs) {
  return Formula(std::make_shared<Part>(Part{std::move(name), std::move(operands), std::move(attrs), std::nullopt}));
}

ValueId Formula::emit(Builder& builder) const {
  if (!part_->value) {
    std::vector<ValueId> operands;
    for (const Formula& operand : part_->operands) operands.push_back(operand.emit(builder));
    part_->value = builder.op(part_->name, std::move(operands), part_->attrs);
  }
  return *part_->value;
}

Formula operator+(const Formula& a, const Formula& b) { return Formula::op("add", {a, b}); }
Formula operator-(const Formula& a, const Formula& b) { return Formula::op("subtract", {a, b}); }
Formula operator*(const Formula& a, const Formula& b) { return Formula::op("multiply", {a, b}); }
Formula operator/(const Formula& a, const Formula& b) { return Formula::op("divide", {a, b}); }
Formula operator-(const Formula& a) { return unary("negate", a); }

Formula unary(const std::string& name, const Formula& x) { return Formula::op(name, {x}); }
Formula maximum(const Formula& a, const Formula& b) { return Formula::op("maximum", {a, b}); }
Formula minimum(const Formula& a, const Formula& b) { return Formula::op("minimum", {a, b}); }
Formula clip(const Formula& x, double low, double high) { return minimum(maximum(x, low), high); }
Formula square(const Formula& x) { return unary("square", x); }
Formula greater(const Formula& a, const Formula& b) { return Formula::op("greater", {a, b}); }
Formula select(const Formula& condition, const Formula& a, const Formula& b) { return Formula::op("select", {condition, a, b}); }

namespace {

Formula reduce(const std::string& name, const Formula& x, const Dims& dims, Keep keep) {
  return Formula::op(name, {x}, {{"dims", dims.vector()}, {"keep", int64_t{keep == Keep::kYes}}});
}

}  // namespace

Formula sum(const Formula& x, const Dims& dims, Keep keep) { return reduce("reduce_sum", x, dims, keep); }
Formula logsumexp(const Formula& x, const Dims& dims, Keep keep) { return reduce("logsumexp", x, dims, keep); }
Formula reshape(const Formula& x, const Dims& shape) { return Formula::op("reshape", {x}, {{"shape", shape.vector()}}); }

Formula broadcast_scalar(const Formula& x, const Dims& shape) {
  if (shape.empty()) return x;
  return Formula::op("broadcast", {x}, {{"shape", shape.vector()}, {"dims", std::vector<int64_t>{}}});
}

Dims all_dims(int rank) {
  Dims dims;
  for (int dim = 0; dim < rank; ++dim) dims.push_back(dim);
  return dims;
}

}  // namespace espalier::nn

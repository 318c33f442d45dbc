#include "espalier/nn/formula.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace espalier::nn {

// Nothing here recurses: a sum over all variables of a model nests as deep as there are variables.
struct Formula::Part {
  ~Part();
  std::string name;
  std::vector<Formula> operands;  // until emitted
  Attrs attrs;
  std::optional<ValueId> value;  // once emitted
};

Formula::Part::~Part() {
  std::vector<Formula> left = std::move(operands);
  while (!left.empty()) {
    std::shared_ptr<Part> last = std::move(left.back().part_);
    left.pop_back();
    if (last.use_count() > 1) continue;
    std::move(last->operands.begin(), last->operands.end(), std::back_inserter(left));
    last->operands.clear();
  }
}

Formula::Formula(double constant) : part_(std::make_shared<Part>(Part{"constant", {}, {{"value", constant}}, std::nullopt})) {}

Formula Formula::of(ValueId value) { return Formula(std::make_shared<Part>(Part{"", {}, {}, value})); }

Formula Formula::op(std::string name, std::vector<Formula> operands, Attrs attrs) {
  return Formula(std::make_shared<Part>(Part{std::move(name), std::move(operands), std::move(attrs), std::nullopt}));
}

ValueId Formula::emit(Builder& builder) const {
  std::vector<std::pair<Part*, size_t>> path = {{part_.get(), 0}};  // with the next operand of each
  while (!path.empty()) {
    auto& [part, next] = path.back();
    if (!part->value && next < part->operands.size()) {
      Part* operand = part->operands[next++].part_.get();
      path.emplace_back(operand, 0);
      continue;
    }
    if (!part->value) {
      std::vector<ValueId> operands;
      for (const Formula& operand : part->operands) operands.push_back(*operand.part_->value);
      part->value = builder.op(part->name, std::move(operands), part->attrs);
      part->operands.clear();
    }
    path.pop_back();
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

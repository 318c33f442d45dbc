#include <fmt/format.h>

#include <numeric>

#include "espalier/ops/elementwise.h"

namespace espalier::ops::reshape {
namespace {

// Builds the rule by walking both shapes from the major end. While what is left of one dim divides what is left of the other, the smaller
// is a factor of both; a common divisor that divides neither is a factor too, behind which the dims have to be whole until both products
// meet.
class Matcher {
 public:
  Matcher(const Dims& from, const Dims& to)
      : from_(from), to_(to), from_dims_(static_cast<size_t>(from.rank())), to_dims_(static_cast<size_t>(to.rank())) {}

  FactorRule rule() {
    if (from_.volume() == 0)
      whole_rest();
    else
      match();
    rule_.operands = {from_dims_};
    rule_.results = {to_dims_};
    return rule_;
  }

 private:
  void match() {
    int f = 0, t = 0;
    int64_t left_from = 1, left_to = 1;  // of the dims f - 1 and t - 1
    for (;;) {
      while (left_from == 1 && f < from_.rank()) left_from = from_[f++];
      while (left_to == 1 && t < to_.rank()) left_to = to_[t++];
      if (left_from == 1 && left_to == 1) return;
      const int64_t common = std::gcd(left_from, left_to);
      if (common > 1) {
        shared(f - 1, t - 1, common);
        left_from /= common;
        left_to /= common;
        continue;
      }
      // Nothing in common: whole, dim by dim, until the products are equal.
      int64_t product_from = left_from, product_to = left_to;
      only(from_dims_, f - 1, product_from);
      only(to_dims_, t - 1, product_to);
      while (product_from != product_to) {
        bool take_from = product_from < product_to;
        int64_t size = take_from ? from_[f] : to_[t];
        if (size != 1) take_from ? only(from_dims_, f, size) : only(to_dims_, t, size);
        (take_from ? product_from : product_to) *= size;
        ++(take_from ? f : t);
      }
      left_from = left_to = 1;
    }
  }

  void whole_rest() {  // nothing to split where nothing is
    for (int d = 0; d < from_.rank(); ++d) only(from_dims_, d, from_[d]);
    for (int d = 0; d < to_.rank(); ++d) only(to_dims_, d, to_[d]);
  }

  int8_t factor(FactorKind kind, int64_t size) {
    rule_.factors.push_back({static_cast<char>('a' + rule_.factors.size() % 26), kind, size});
    return static_cast<int8_t>(rule_.factors.size() - 1);
  }
  void shared(int f, int t, int64_t size) {
    int8_t id = factor(FactorKind::kPass, size);
    from_dims_[static_cast<size_t>(f)].push_back(id);
    to_dims_[static_cast<size_t>(t)].push_back(id);
  }
  void only(FactorTensor& dims, int d, int64_t size) { dims[static_cast<size_t>(d)].push_back(factor(FactorKind::kWhole, size)); }

  const Dims &from_, &to_;
  FactorTensor from_dims_, to_dims_;
  FactorRule rule_;
};

FactorRule rule(const OpSignature& signature) {
  const Dims& from = signature.operands[0].shape;
  const std::vector<int64_t>& shape = signature.attrs.integers("shape");
  if (shape.size() > static_cast<size_t>(kMaxRank))
    usage_error(fmt::format("a shape of rank {} is too long", shape.size()), signature.where, fmt::format("at most {} dims", kMaxRank));
  const Dims to(shape);
  if (checked_volume(to, signature.where) != from.volume())
    usage_error(fmt::format("cannot reshape {} into {}", to_string(from), to_string(to)), signature.where,
                fmt::format("the sizes have to multiply to {}", from.volume()));
  return Matcher(from, to).rule();
}

std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  return {reshaped(b, d[0], b.shape(op.operands[0]))};
}

OpSample sample(Dims from, std::vector<int64_t> to) { return {{from}, {{"shape", std::move(to)}}}; }

}  // namespace

extern const OpDef def{
    .name = "reshape",
    .doc = "the same elements in row-major order under another shape",
    .rule = rule,
    .linearity = Linearity::kJoint,
    .any_dtype = true,
    .attributes = {{"shape", AttrKind::kIntegers}},
    .grad = gradient,
    .view = true,
    .samples = {sample({6, 4}, {24}), sample({24}, {4, 6}), sample({2, 3, 4}, {6, 4}), sample({6, 4}, {8, 3}), sample({7, 1}, {7}),
                sample({1}, {}), sample({3, 4, 5}, {3, 20}), sample({0, 4}, {0}), sample({6, 10}, {4, 15}),
                sample({4, 2, 3, 5}, {8, 1, 15})},
};

}  // namespace espalier::ops::reshape

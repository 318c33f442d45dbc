#include "espalier/ir/factor_rule.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier {
namespace {

// One rule's text while it is read: a cursor and the factors met so far.
class RuleReader {
 public:
  RuleReader(std::string_view text, FactorRule& rule) : text_(text), rule_(rule) {}

  // The dims up to the next ",", "->" or the end.
  FactorTensor tensor() {
    FactorTensor dims;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '-') dims.push_back(dim());
    return dims;
  }
  bool accept(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool done() const { return at_ == text_.size(); }

 private:
  FactorDim dim() {
    if (accept("1")) return {};
    if (accept("[")) {
      FactorDim whole = {factor(FactorKind::kWhole)};
      ESPALIER_ASSERT(accept("]"));
      return whole;
    }
    if (!accept("(")) return {factor(FactorKind::kReduce)};
    FactorDim dim;
    while (!accept(")")) dim.push_back(factor(FactorKind::kReduce));
    return dim;
  }

  int8_t factor(FactorKind kind) {
    char letter = text_[at_++];
    for (size_t f = 0; f < rule_.factors.size(); ++f)
      if (rule_.factors[f].letter == letter) return static_cast<int8_t>(f);
    rule_.factors.push_back({letter, kind, -1});
    return static_cast<int8_t>(rule_.factors.size() - 1);
  }

  std::string_view text_;
  FactorRule& rule_;
  size_t at_ = 0;
};

// Gives the factors of one operand dim their sizes: known ones must agree, at most one unknown is inferred.
void bind_dim(FactorRule& rule, const FactorDim& dim, int64_t size, int operand, const std::string& where) {
  int64_t known = 1;
  Factor* unknown = nullptr;
  for (int8_t f : dim) {
    Factor& factor = rule.factors[static_cast<size_t>(f)];
    if (factor.size < 0)
      unknown = &factor;
    else
      known *= factor.size;
  }
  if (unknown != nullptr && known > 0 && size % known == 0) unknown->size = size / known, known = size;
  if (known != size)
    usage_error(fmt::format("operand {} has a dim of size {} where {} is needed", operand, size, known), where,
                "make the shapes of the operands agree");
}

}  // namespace

Dims FactorRule::result_shape(int result) const {
  Dims shape;
  for (const FactorDim& dim : results[static_cast<size_t>(result)]) {
    int64_t size = 1;
    for (int8_t f : dim) size *= factors[static_cast<size_t>(f)].size;
    shape.push_back(size);
  }
  return shape;
}

FactorRule parse_rule(std::string_view text, const std::vector<Dims>& operands, const std::string& where,
                      const std::vector<std::pair<char, int64_t>>& sizes) {
  FactorRule rule;
  RuleReader reader(text, rule);
  do {
    rule.operands.push_back(reader.tensor());
  } while (reader.accept(","));
  ESPALIER_ASSERT(reader.accept("->"));
  if (operands.empty()) rule.operands.clear();
  do {
    rule.results.push_back(reader.tensor());
    for (const FactorDim& dim : rule.results.back())
      for (int8_t f : dim)
        if (Factor& factor = rule.factors[static_cast<size_t>(f)]; factor.kind == FactorKind::kReduce) factor.kind = FactorKind::kPass;
  } while (reader.accept(","));
  ESPALIER_ASSERT(reader.done() && rule.operands.size() == operands.size());
  for (auto [letter, size] : sizes)
    for (Factor& factor : rule.factors)
      if (factor.letter == letter) factor.size = size;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].rank() != static_cast<int>(rule.operands[i].size()))
      usage_error(fmt::format("operand {} has shape {} but rank {} is needed", i, to_string(operands[i]), rule.operands[i].size()), where,
                  fmt::format("the rule is \"{}\"", text));
    for (int d = 0; d < operands[i].rank(); ++d)
      bind_dim(rule, rule.operands[i][static_cast<size_t>(d)], operands[i][d], static_cast<int>(i), where);
  }
  for (const Factor& factor : rule.factors) ESPALIER_ASSERT(factor.size >= 0);
  return rule;
}

FactorRule elementwise_rule(const std::vector<Dims>& operands, int results, const std::string& where) {
  int rank = 0;
  for (const Dims& shape : operands) rank = std::max(rank, shape.rank());
  FactorRule rule;
  FactorTensor result;
  for (int d = 0; d < rank; ++d) {
    Factor factor{static_cast<char>('a' + d), FactorKind::kPass, 1};
    for (const Dims& shape : operands) {
      int own = d - (rank - shape.rank());
      if (own < 0 || shape[own] == 1) continue;
      if (factor.size != 1 && factor.size != shape[own])
        usage_error(fmt::format("shapes {} do not broadcast together",
                                [&] {
                                  std::string all;
                                  for (const Dims& s : operands) all += (all.empty() ? "" : " and ") + to_string(s);
                                  return all;
                                }()),
                    where, "sizes must be equal or 1");
      factor.size = shape[own];
    }
    rule.factors.push_back(factor);
    result.push_back({static_cast<int8_t>(d)});
  }
  for (const Dims& shape : operands) {
    FactorTensor dims;
    for (int own = 0; own < shape.rank(); ++own) {
      auto f = static_cast<int8_t>(own + rank - shape.rank());
      dims.push_back(shape[own] == rule.factors[static_cast<size_t>(f)].size ? FactorDim{f} : FactorDim{});
    }
    rule.operands.push_back(dims);
  }
  rule.results.assign(static_cast<size_t>(results), result);
  return rule;
}

bool can_split(const FactorRule& rule, int factor, int64_t parts) {
  const Factor& split = rule.factors[static_cast<size_t>(factor)];
  if (split.kind == FactorKind::kWhole) return false;
  auto legal = [&](const FactorTensor& tensor) {
    for (const FactorDim& dim : tensor)
      for (size_t i = 0; i < dim.size(); ++i)
        if (dim[i] == factor && dim.size() > 1 && (i > 0 || split.size % parts != 0)) return false;
    return true;
  };
  return std::all_of(rule.operands.begin(), rule.operands.end(), legal) && std::all_of(rule.results.begin(), rule.results.end(), legal);
}

namespace {

Sharding tensor_sharding(const FactorTensor& tensor, const Split& split) {
  Sharding sharding(static_cast<int>(tensor.size()));
  for (size_t d = 0; d < tensor.size(); ++d)
    if (!tensor[d].empty()) sharding.dims[d] = split[static_cast<size_t>(tensor[d].front())];
  return sharding;
}

}  // namespace

Sharding operand_sharding(const FactorRule& rule, int operand, const Split& split) {
  return tensor_sharding(rule.operands[static_cast<size_t>(operand)], split);
}

Sharding result_sharding(const FactorRule& rule, int result, const Split& split) {
  Sharding sharding = tensor_sharding(rule.results[static_cast<size_t>(result)], split);
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.factors[f].kind == FactorKind::kReduce) sharding.pending |= split[f].set();
  if (sharding.pending != 0) sharding.reduction = rule.reduction;
  return sharding;
}

}  // namespace espalier

#pragma once
// The slow, obvious version of every op, in double and independent of the kernels: loops over indices, the standard library's functions,
// one Philox block at a time. It decides what is right: values of the kernels, and by finite differences their gradients.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "espalier/base/philox.h"
#include "espalier/ir/graph.h"

namespace espalier::test {

using Index = std::vector<int64_t>;

struct Array {
  Dims shape;
  std::vector<double> values;
  Array() = default;
  explicit Array(Dims s, double fill = 0) : shape(s), values(static_cast<size_t>(s.volume()), fill) {}
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  int64_t place(const Index& index) const {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at = at * shape[static_cast<int>(d)] + index[d];
    return at;
  }
  double& at(const Index& index) { return values[static_cast<size_t>(place(index))]; }
  double at(const Index& index) const { return values[static_cast<size_t>(place(index))]; }
};
using Arrays = std::vector<Array>;

// The results of an op; `results` are their shapes.
using Reference = std::function<Arrays(const Attrs& attrs, const Arrays& operands, const std::vector<Dims>& results)>;
inline const std::map<std::string, Reference>& references();

template <class Visit>
void visit_indices(const Dims& shape, const Visit& visit) {
  for (int64_t i = 0; i < shape.volume(); ++i) {
    Index index(static_cast<size_t>(shape.rank()));
    int64_t rest = i;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % shape[d];
      rest /= shape[d];
    }
    visit(index);
  }
}

// The element an operand contributes at a place of the result it is broadcast to.
inline double broadcast_at(const Array& operand, const Index& index) {
  Index own(index.end() - operand.shape.rank(), index.end());
  for (int d = 0; d < operand.shape.rank(); ++d)
    if (operand.shape[d] == 1) own[static_cast<size_t>(d)] = 0;
  return operand.at(own);
}

using Scalars = std::vector<double>;
using Elementwise = std::function<Scalars(const Attrs&, const Scalars&)>;

inline Reference elementwise(Elementwise function) {
  return [function](const Attrs& attrs, const Arrays& operands, const std::vector<Dims>& results) {
    Arrays out;
    for (const Dims& shape : results) out.emplace_back(shape);
    visit_indices(results[0], [&](const Index& index) {
      Scalars in;
      for (const Array& operand : operands) in.push_back(broadcast_at(operand, index));
      Scalars values = function(attrs, in);
      for (size_t r = 0; r < out.size(); ++r) out[r].at(index) = values[r];
    });
    return out;
  };
}
inline Reference unary(double (*function)(double)) {
  return elementwise([function](const Attrs&, const Scalars& in) { return Scalars{function(in[0])}; });
}
inline Reference binary(double (*function)(double, double)) {
  return elementwise([function](const Attrs&, const Scalars& in) { return Scalars{function(in[0], in[1])}; });
}

// The values a body's outputs take when its inputs are these arrays, each already of the result's shape.
inline Arrays run_body(const Graph& body, const Arrays& inputs, const Dims& shape) {
  std::vector<Array> values(body.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array& spread = values[static_cast<size_t>(body.inputs[i].value)] = Array(shape);
    visit_indices(shape, [&](const Index& index) { spread.at(index) = broadcast_at(inputs[i], index); });
  }
  for (const Op& op : body.ops) {
    Arrays operands;
    for (ValueId id : op.operands) operands.push_back(values[static_cast<size_t>(id)]);
    Arrays results =
        references().at(op.def->name)(op.attrs, operands, std::vector<Dims>(op.results.size(), operands.empty() ? Dims{} : shape));
    for (size_t r = 0; r < results.size(); ++r) {
      Array& spread = values[static_cast<size_t>(op.results[r])] = Array(shape);
      visit_indices(shape, [&](const Index& index) { spread.at(index) = broadcast_at(results[r], index); });
    }
  }
  Arrays outputs;
  for (const Output& output : body.outputs) outputs.push_back(values[static_cast<size_t>(output.value)]);
  return outputs;
}

// Sums over every assignment of the letters of "ab,bc->ac".
inline Array einsum(const std::string& factors, const Array& a, const Array& b, const Dims& shape) {
  const size_t comma = factors.find(','), arrow = factors.find("->");
  const std::string in_a = factors.substr(0, comma), in_b = factors.substr(comma + 1, arrow - comma - 1), out = factors.substr(arrow + 2);
  std::map<char, int64_t> size;
  for (size_t i = 0; i < in_a.size(); ++i) size[in_a[i]] = a.shape[static_cast<int>(i)];
  for (size_t i = 0; i < in_b.size(); ++i) size[in_b[i]] = b.shape[static_cast<int>(i)];
  Dims all;
  std::map<char, size_t> at;
  for (auto [letter, n] : size) at[letter] = static_cast<size_t>(all.rank()), all.push_back(n);
  Array result(shape);
  auto pick = [&](const std::string& letters, const Index& index) {
    Index own;
    for (char letter : letters) own.push_back(index[at[letter]]);
    return own;
  };
  visit_indices(all, [&](const Index& index) { result.at(pick(out, index)) += a.at(pick(in_a, index)) * b.at(pick(in_b, index)); });
  return result;
}

// Folds the elements of x that fall on each element of the result.
inline Reference reduction(double start, std::function<double(double, double)> fold) {
  return [start, fold](const Attrs& attrs, const Arrays& operands, const std::vector<Dims>& results) {
    Array result(results[0], start);
    const std::vector<int64_t>& dims = attrs.integers("dims");
    visit_indices(operands[0].shape, [&](const Index& index) {
      Index kept;
      for (size_t d = 0; d < index.size(); ++d) {
        bool reduced = std::count(dims.begin(), dims.end(), static_cast<int64_t>(d)) > 0;
        if (!reduced || attrs.integer("keep") == 1) kept.push_back(reduced ? 0 : index[d]);
      }
      result.at(kept) = fold(result.at(kept), operands[0].at(index));
    });
    return Arrays{result};
  };
}
inline double log_add(double a, double b) {
  double top = std::max(a, b);
  return std::isinf(top) ? top : top + std::log(std::exp(a - top) + std::exp(b - top));
}

// Result element <- function of its index.
inline Arrays by_index(const Dims& shape, const std::function<double(const Index&)>& function) {
  Array result(shape);
  visit_indices(shape, [&](const Index& index) { result.at(index) = function(index); });
  return {result};
}

inline uint32_t random_word(const Attrs& attrs, uint32_t step, uint64_t index) {
  return random_block(static_cast<uint64_t>(attrs.integer("seed")), static_cast<uint32_t>(attrs.integer("stream")), step,
                      index / 4)[index % 4];
}

// The number of which a fraction `p` of a normal distribution is less, by bisection.
inline double normal_quantile(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

inline double normal_at(const Attrs& attrs, uint64_t index, bool truncated) {
  double p = (static_cast<double>(random_word(attrs, 0, index) >> 8) + 0.5) * 0x1p-24;
  if (truncated) p = 0.5 + (p - 0.5) * std::erf(std::sqrt(2.0));  // only between -2 and 2 deviations
  return normal_quantile(p);
}

// Householder's QR of a (rows x columns) matrix, the signs of R's diagonal made positive: Q. Index [row][column].
inline std::vector<Scalars> orthonormal(std::vector<Scalars> a) {
  const size_t rows = a.size(), columns = rows == 0 ? 0 : a[0].size();
  std::vector<Scalars> q(rows, Scalars(rows));
  for (size_t i = 0; i < rows; ++i) q[i][i] = 1;
  for (size_t k = 0; k < columns; ++k) {
    Scalars v(rows);
    double length = 0;
    for (size_t i = k; i < rows; ++i) v[i] = a[i][k], length += v[i] * v[i];
    v[k] += std::copysign(std::sqrt(length), v[k]);
    double square = 0;
    for (double x : v) square += x * x;
    auto reflect = [&](std::vector<Scalars>& m) {  // m <- (I - 2 v v' / v'v) m
      for (size_t j = 0; j < m[0].size(); ++j) {
        double along = 0;
        for (size_t i = 0; i < rows; ++i) along += v[i] * m[i][j];
        for (size_t i = 0; i < rows; ++i) m[i][j] -= 2 * along / square * v[i];
      }
    };
    reflect(a);
    reflect(q);
  }
  std::vector<Scalars> result(rows, Scalars(columns));
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) result[i][j] = q[j][i] * (a[j][j] < 0 ? -1 : 1);
  return result;
}

inline Arrays orthogonal_reference(const Attrs& attrs, const Arrays&, const std::vector<Dims>& results) {
  Array result(results[0]);
  if (result.size() == 0) return {result};
  const int64_t columns = result.shape.back(), rows = result.size() / columns, longer = std::max(rows, columns),
                shorter = std::min(rows, columns);
  std::vector<Scalars> a(static_cast<size_t>(longer), Scalars(static_cast<size_t>(shorter)));
  for (int64_t j = 0; j < shorter; ++j)  // drawn column by column
    for (int64_t i = 0; i < longer; ++i)
      a[static_cast<size_t>(i)][static_cast<size_t>(j)] = normal_at(attrs, static_cast<uint64_t>(j * longer + i), false);
  std::vector<Scalars> q = orthonormal(a);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[r * columns + c] = attrs.number("gain") * (rows >= columns ? q[static_cast<size_t>(r)][static_cast<size_t>(c)]
                                                                        : q[static_cast<size_t>(c)][static_cast<size_t>(r)]);
  return {result};
}

inline std::map<std::string, Reference> elementwise_references() {
  std::map<std::string, Reference> table;
  table["add"] = binary([](double a, double b) { return a + b; });
  table["subtract"] = binary([](double a, double b) { return a - b; });
  table["multiply"] = binary([](double a, double b) { return a * b; });
  table["divide"] = binary([](double a, double b) { return a / b; });
  table["maximum"] = binary([](double a, double b) { return std::max(a, b); });
  table["minimum"] = binary([](double a, double b) { return std::min(a, b); });
  table["greater"] = binary([](double a, double b) { return a > b ? 1.0 : 0.0; });
  table["greater_equal"] = binary([](double a, double b) { return a >= b ? 1.0 : 0.0; });
  table["equal"] = binary([](double a, double b) { return a == b ? 1.0 : 0.0; });
  table["equal_i32"] = table["equal"];
  table["select"] = elementwise([](const Attrs&, const Scalars& in) { return Scalars{in[0] != 0 ? in[1] : in[2]}; });
  table["negate"] = unary([](double x) { return -x; });
  table["abs"] = unary([](double x) { return std::fabs(x); });
  table["sign"] = unary([](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  table["square"] = unary([](double x) { return x * x; });
  table["sqrt"] = unary([](double x) { return std::sqrt(x); });
  table["rsqrt"] = unary([](double x) { return 1 / std::sqrt(x); });
  table["exp"] = unary([](double x) { return std::exp(x); });
  table["expm1"] = unary([](double x) { return std::expm1(x); });
  table["log"] = unary([](double x) { return std::log(x); });
  table["log1p"] = unary([](double x) { return std::log1p(x); });
  table["tanh"] = unary([](double x) { return std::tanh(x); });
  table["sigmoid"] = unary([](double x) { return 1 / (1 + std::exp(-x)); });
  table["relu"] = unary([](double x) { return x > 0 ? x : 0; });
  table["erf"] = unary([](double x) { return std::erf(x); });
  table["to_f32"] = unary([](double x) { return x; });
  table["to_i32"] = unary([](double x) { return std::clamp(std::trunc(x), -2147483648.0, 2147483647.0); });
  table["constant"] = elementwise([](const Attrs& attrs, const Scalars&) { return Scalars{attrs.number("value")}; });
  table["sgd_update"] = elementwise([](const Attrs&, const Scalars& in) { return Scalars{in[0] - in[2] * in[1]}; });
  table["momentum_update"] = elementwise([](const Attrs& attrs, const Scalars& in) {
    const double decay = attrs.number("momentum"), m = decay * in[1] - in[3] * in[2];
    return Scalars{in[0] + (attrs.integer("nesterov") == 1 ? decay * m - in[3] * in[2] : m), m};
  });
  table["adam_rate"] = elementwise([](const Attrs& attrs, const Scalars& in) {
    return Scalars{in[0] * std::sqrt(1 - std::pow(attrs.number("beta_2"), in[1])) / (1 - std::pow(attrs.number("beta_1"), in[1]))};
  });
  table["adam_update"] = elementwise([](const Attrs& attrs, const Scalars& in) {
    double w = in[0], m = in[1], v = in[2], g = in[3];
    w -= w * attrs.number("weight_decay") * in[5];
    m += (g - m) * (1 - attrs.number("beta_1"));
    v += (g * g - v) * (1 - attrs.number("beta_2"));
    return Scalars{w - m * in[4] / (std::sqrt(v) + attrs.number("epsilon")), m, v};
  });
  table["require_finite"] = [](const Attrs&, const Arrays& in, const std::vector<Dims>&) { return Arrays{in[0]}; };
  return table;
}

// An update after the product that makes its gradient; `state` operands come first.
inline Reference of_product(const Reference& update, size_t state) {
  return [update, state](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    Arrays operands(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(state));
    operands.push_back(einsum(attrs.text("factors"), in[state], in[state + 1], results[0]));
    operands.insert(operands.end(), in.begin() + static_cast<std::ptrdiff_t>(state) + 2, in.end());
    return update(attrs, operands, results);
  };
}

inline void add_product_references(std::map<std::string, Reference>& table) {
  table["matmul"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    return Arrays{einsum(attrs.text("factors"), in[0], in[1], results[0])};
  };
  table["matmul_epilogue"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    Arrays inputs = {einsum(attrs.text("factors"), in[0], in[1], results[0])};
    inputs.insert(inputs.end(), in.begin() + 2, in.end());
    return run_body(attrs.graph("body"), inputs, results[0]);
  };
  table["matmul_update"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    Array updated = einsum(attrs.text("factors"), in[1], in[2], results[0]);
    for (size_t i = 0; i < updated.values.size(); ++i) updated.values[i] = in[0].values[i] - in[3].values[0] * updated.values[i];
    return Arrays{updated};
  };
  table["matmul_momentum_update"] = of_product(table.at("momentum_update"), 2);
  table["matmul_adam_update"] = of_product(table.at("adam_update"), 3);
  table["fused"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    return run_body(attrs.graph("body"), in, results[0]);
  };
  table["reduce_sum"] = reduction(0, [](double a, double b) { return a + b; });
  table["reduce_max"] = reduction(-std::numeric_limits<double>::infinity(), [](double a, double b) { return std::max(a, b); });
  table["logsumexp"] = reduction(-std::numeric_limits<double>::infinity(), log_add);
  table["softmax"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    const auto dim = static_cast<size_t>(attrs.integer("dim"));
    return by_index(results[0], [&](Index index) {
      double top = std::exp(in[0].at(index)), sum = 0;
      for (index[dim] = 0; index[dim] < results[0][static_cast<int>(dim)]; ++index[dim]) sum += std::exp(in[0].at(index));
      return top / sum;
    });
  };
  table["argmax"] = [](const Attrs&, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](Index index) {
      index.push_back(0);
      int64_t best = 0;
      for (int64_t j = 0; j < in[0].shape.back(); ++j) {
        Index at_best = index;
        at_best.back() = best;
        index.back() = j;
        if (in[0].at(index) > in[0].at(at_best)) best = j;
      }
      return static_cast<double>(best);
    });
  };
}

inline void add_label_references(std::map<std::string, Reference>& table) {
  auto label_at = [](const Array& labels, const Index& index) { return static_cast<int64_t>(labels.at(index)); };
  auto rows = [](const Index& index) { return Index(index.begin(), index.end() - 1); };
  table["one_hot"] = [=](const Attrs&, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](const Index& index) { return label_at(in[0], rows(index)) == index.back() ? 1.0 : 0.0; });
  };
  table["put_label"] = [=](const Attrs&, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0],
                    [&](const Index& index) { return label_at(in[1], rows(index)) == index.back() ? in[0].at(rows(index)) : 0.0; });
  };
  table["take_label"] = [=](const Attrs&, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](Index index) {
      int64_t label = label_at(in[1], index);
      index.push_back(label);
      return label < in[0].shape.back() ? in[0].at(index) : 0.0;
    });
  };
  table["softmax_cross_entropy"] = [=](const Attrs&, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](Index index) {
      int64_t label = label_at(in[2], index);
      double lse = in[1].at(index);
      index.push_back(label);
      return label < in[0].shape.back() ? lse - in[0].at(index) : 0.0;
    });
  };
  table["softmax_cross_entropy_grad"] = [=](const Attrs&, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](const Index& index) {
      int64_t label = label_at(in[2], rows(index));
      if (label >= in[0].shape.back()) return 0.0;
      return in[3].at(rows(index)) * (std::exp(in[0].at(index) - in[1].at(rows(index))) - (label == index.back() ? 1 : 0));
    });
  };
}

inline void add_move_references(std::map<std::string, Reference>& table) {
  table["broadcast"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](const Index& index) {
      Index own;
      for (size_t i = 0; i < attrs.integers("dims").size(); ++i)
        own.push_back(in[0].shape[static_cast<int>(i)] == 1 ? 0 : index[static_cast<size_t>(attrs.integers("dims")[i])]);
      return in[0].at(own);
    });
  };
  table["reshape"] = [](const Attrs&, const Arrays& in, const std::vector<Dims>& results) {
    Array result = in[0];
    result.shape = results[0];
    return Arrays{result};
  };
  table["transpose"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](const Index& index) {
      Index own(index.size());
      for (size_t i = 0; i < index.size(); ++i) own[static_cast<size_t>(attrs.integers("permutation")[i])] = index[i];
      return in[0].at(own);
    });
  };
  table["slice"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](Index index) {
      for (size_t d = 0; d < index.size(); ++d)
        index[d] = attrs.integers("begin")[d] + index[d] * (attrs.has("step") ? attrs.integers("step")[d] : 1);
      return in[0].at(index);
    });
  };
  table["pad"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    Array result(results[0]);
    visit_indices(in[0].shape, [&](Index index) {
      double value = in[0].at(index);
      for (size_t d = 0; d < index.size(); ++d)
        index[d] = attrs.integers("before")[d] + index[d] * (attrs.has("step") ? attrs.integers("step")[d] : 1);
      result.at(index) = value;
    });
    return Arrays{result};
  };
  table["concat"] = [](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    return by_index(results[0], [&](Index index) {
      int64_t& at = index[static_cast<size_t>(attrs.integer("dim"))];
      for (const Array& operand : in) {
        int64_t size = operand.shape[static_cast<int>(attrs.integer("dim"))];
        if (at < size) return operand.at(index);
        at -= size;
      }
      return std::numeric_limits<double>::quiet_NaN();
    });
  };
}

inline void add_random_references(std::map<std::string, Reference>& table) {
  auto by_place = [](const Dims& shape, const std::function<double(uint64_t)>& function) {
    Array result(shape);
    for (int64_t i = 0; i < result.size(); ++i) result[i] = function(static_cast<uint64_t>(i));
    return Arrays{result};
  };
  table["random_uniform"] = [=](const Attrs& attrs, const Arrays&, const std::vector<Dims>& results) {
    return by_place(results[0], [&](uint64_t i) {
      return attrs.number("low") + (attrs.number("high") - attrs.number("low")) * static_cast<double>(to_uniform(random_word(attrs, 0, i)));
    });
  };
  table["random_normal"] = [=](const Attrs& attrs, const Arrays&, const std::vector<Dims>& results) {
    return by_place(results[0], [&](uint64_t i) {
      return attrs.number("mean") + attrs.number("stddev") * normal_at(attrs, i, attrs.integer("truncated") == 1);
    });
  };
  table["dropout"] = [=](const Attrs& attrs, const Arrays& in, const std::vector<Dims>& results) {
    return by_place(results[0], [&](uint64_t i) {
      bool kept = static_cast<double>(to_uniform(random_word(attrs, static_cast<uint32_t>(in[1][0]), i))) >= attrs.number("rate");
      return kept ? in[0][static_cast<int64_t>(i)] / (1 - attrs.number("rate")) : 0.0;
    });
  };
  table["identity"] = [](const Attrs& attrs, const Arrays&, const std::vector<Dims>& results) {
    return by_index(results[0], [&](const Index& index) { return index[0] == index[1] ? attrs.number("gain") : 0.0; });
  };
  table["literal"] = [=](const Attrs& attrs, const Arrays&, const std::vector<Dims>& results) {
    return by_place(results[0], [&](uint64_t i) { return std::bit_cast<float>(static_cast<int32_t>(attrs.integers("bits")[i])); });
  };
  table["orthogonal"] = orthogonal_reference;
}

inline const std::map<std::string, Reference>& references() {
  static const std::map<std::string, Reference> table = [] {
    std::map<std::string, Reference> all = elementwise_references();
    add_product_references(all);
    add_label_references(all);
    add_move_references(all);
    add_random_references(all);
    return all;
  }();
  return table;
}

}  // namespace espalier::test

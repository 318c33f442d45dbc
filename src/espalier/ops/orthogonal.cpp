#include <fmt/format.h>

#include <cmath>

#include "espalier/ops/random.h"

namespace espalier::ops::orthogonal {
namespace {

// Every device computes the whole matrix: its parts depend on each other.
FactorRule rule(const OpSignature& signature) {
  if (signature.attrs.integers("shape").size() < 2)
    usage_error("an orthogonal tensor has at least 2 dims", signature.where, "use another initializer for vectors");
  FactorRule rule = shape_rule(signature);
  for (Factor& factor : rule.factors) factor.kind = FactorKind::kWhole;
  return rule;
}

// The columns of a (rows x columns) matrix made orthonormal by modified Gram-Schmidt, twice, which is exact to rounding (Giraud et al.,
// 2005). It leaves the diagonal of R positive, as Keras' correction of signs does. Stored column by column.
void orthonormalize(std::vector<double>& q, int64_t rows, int64_t columns) {
  auto dot = [&](const double* x, const double* y) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += x[i] * y[i];
    return sum;
  };
  for (int64_t j = 0; j < columns; ++j) {
    double* column = q.data() + j * rows;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < j; ++k) {
        const double* before = q.data() + k * rows;
        const double along = dot(before, column);
        for (int64_t i = 0; i < rows; ++i) column[i] -= along * before[i];
      }
    const double length = std::sqrt(dot(column, column));
    for (int64_t i = 0; i < rows; ++i) column[i] /= length;
  }
}

Kernel cpu(const LocalOp& op) {
  return {.run = [shape = op.results[0].shape, key = random_key(*op.attrs), gain = op.attrs->number("gain")](const KernelCall& call) {
    const int64_t columns = shape.back(), rows = columns == 0 ? 0 : shape.volume() / columns;
    const int64_t longer = std::max(rows, columns), shorter = std::min(rows, columns);
    std::vector<double> q(static_cast<size_t>(rows * columns));
    for (int64_t i = 0; i < rows * columns; i += kRandomBlock) {
      const int n = static_cast<int>(std::min<int64_t>(kRandomBlock, rows * columns - i));
      uint32_t words[kRandomBlock];
      float normal[kRandomBlock];
      random_words(key, static_cast<uint64_t>(i), n, words);
      normal_of(words, 0, 1, 0, normal, n);
      std::copy_n(normal, n, q.begin() + i);
    }
    orthonormalize(q, longer, shorter);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        call.result<float>(0)[r * columns + c] =
            static_cast<float>(gain * q[static_cast<size_t>(rows >= columns ? c * longer + r : r * longer + c)]);
  }};
}

OpSample sample(std::vector<int64_t> shape) {
  return {{}, {{"shape", std::move(shape)}, {"gain", 1.5}, {"seed", int64_t{99}}, {"stream", int64_t{3}}}};
}

}  // namespace

extern const OpDef def{
    .name = "orthogonal",
    .doc = "a random matrix (leading dims x last dim) with orthonormal rows or columns, times `gain` (Saxe et al., 2014)",
    .rule = rule,
    .operand_count = 0,
    .attributes = {{"gain", AttrKind::kNumber},
                   {"seed", AttrKind::kInteger},
                   {"shape", AttrKind::kIntegers},
                   {"stream", AttrKind::kInteger}},
    .cpu = cpu,
    .random = true,
    .samples = {sample({7, 7}), sample({13, 5}), sample({3, 7}), sample({2, 3, 4}), sample({0, 3})},
};

}  // namespace espalier::ops::orthogonal

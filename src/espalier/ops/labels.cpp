#include "espalier/ops/labels.h"

#include <algorithm>
#include <cmath>

namespace espalier::ops {

std::string leading_letters(int rank) { return std::string("abcdefgh").substr(0, static_cast<size_t>(rank)); }

void need_class_dim(const Dims& shape, const std::string& where) {
  if (shape.empty()) usage_error("a scalar has no dim of classes", where, "give at least one dim; the last one is taken");
}

ClassRange class_range(const LocalTensor& tensor) { return {tensor.offset.back(), tensor.shape.back()}; }

void prepare_lse(const OpSample& sample, const std::vector<void*>& operands) {
  const int64_t classes = sample.operands[0].back(), rows = sample.operands[1].volume();
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = static_cast<const float*>(operands[0]) + row * classes;
    double sum = 0;
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(x[j]));
    static_cast<float*>(operands[1])[row] = static_cast<float>(std::log(sum));
  }
}

}  // namespace espalier::ops

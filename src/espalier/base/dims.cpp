#include "espalier/base/dims.h"

#include <fmt/format.h>

namespace espalier {

std::string to_string(const Dims& dims) {
  if (dims.rank() == 1) return fmt::format("({},)", dims[0]);
  return fmt::format("({})", fmt::join(dims.begin(), dims.end(), ", "));
}

Dims row_major_strides(const Dims& shape) {
  Dims strides = Dims::filled(shape.rank(), 1);
  for (int d = shape.rank() - 2; d >= 0; --d) strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

int64_t checked_volume(const Dims& shape, const std::string& where) {
  constexpr int64_t kLimit = int64_t{1} << 56;  // leaves room to count bytes and to add them up
  int64_t product = 1;                          // zeros count as ones: strides, and the samples of an empty array, are computed too
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) usage_error(fmt::format("shape {} has a negative size", to_string(shape)), where, "give sizes of 0 or more");
    if (size > kLimit / product)
      usage_error(fmt::format("shape {} has more than 2^56 elements", to_string(shape)), where, "give a smaller shape");
    product *= std::max<int64_t>(size, 1);
    empty = empty || size == 0;
  }
  return empty ? 0 : product;
}

}  // namespace espalier

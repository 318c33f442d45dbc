#include "espalier/ir/types.h"

#include <fmt/format.h>

namespace espalier {

const char* to_string(DType dtype) { return dtype == DType::kF32 ? "f32" : "i32"; }

std::string to_string(const TensorType& type) {
  return fmt::format("{}[{}]", to_string(type.dtype), fmt::join(type.shape.begin(), type.shape.end(), ","));
}

}  // namespace espalier

#pragma once
// Element types and tensor types. Shapes are static and logical: nobody sees a padded size.
#include <cstdint>
#include <string>

#include "espalier/base/dims.h"

namespace espalier {

enum class DType : uint8_t { kF32, kI32 };
inline int64_t size_of(DType) { return 4; }
const char* to_string(DType dtype);  // "f32", "i32"

struct TensorType {
  DType dtype = DType::kF32;
  Dims shape;
  int64_t bytes() const { return shape.volume() * size_of(dtype); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string to_string(const TensorType& type);  // "f32[32,64]"

}  // namespace espalier

#pragma once
// An array as a file holds it: Fashion-MNIST stays bytes (47 MB), and becomes floats when a batch is read. Shared, never changed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "espalier/base/dims.h"
#include "espalier/base/number.h"

namespace espalier {

struct Array {
  NumberType type = NumberType::kF32;
  Dims shape;                           // row-major
  std::shared_ptr<std::byte[]> values;  // little endian

  int64_t bytes() const { return shape.volume() * size_of(type); }
};

// Room for an array, not cleared. The caller has checked the shape against the file that claims it. An Error (kMemory) when there is
// no memory, naming `where`.
Array allocate_array(NumberType type, const Dims& shape, const std::string& where);

// Copies of a program's own numbers, row-major; their count is the shape's volume.
Array make_array(const Dims& shape, std::span<const float> values);
Array make_array(const Dims& shape, std::span<const int32_t> values);

}  // namespace espalier

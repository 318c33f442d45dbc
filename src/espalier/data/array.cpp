#include "espalier/data/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "espalier/base/pages.h"
#include "espalier/base/text.h"

namespace espalier {
namespace {

template <class T>
Array copy(NumberType type, const Dims& shape, std::span<const T> values) {
  int64_t volume = checked_volume(shape, "make_array");
  if (volume != static_cast<int64_t>(values.size()))
    usage_error(fmt::format("an array of shape {} has {} numbers, not {}", to_string(shape), volume, values.size()), "make_array",
                "give one number an element");
  Array array = allocate_array(type, shape, "make_array");
  if (volume > 0) std::memcpy(array.values.get(), values.data(), values.size_bytes());
  return array;
}

// Samples are read in any order: a large array is found without walks through page tables.
std::shared_ptr<std::byte[]> allocate(int64_t bytes) {
  if (bytes < kHugePage) return std::shared_ptr<std::byte[]>(new std::byte[static_cast<size_t>(std::max<int64_t>(bytes, 1))]);
  auto pages = std::make_shared<Pages>(bytes);
  return {pages, pages->data()};
}

}  // namespace

Array allocate_array(NumberType type, const Dims& shape, const std::string& where) {
  Array array{type, shape, nullptr};
  try {
    array.values = allocate(array.bytes());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kMemory, fmt::format("no memory for {} of samples", format_bytes(array.bytes())), where,
                "use a smaller data set");
  }
  return array;
}

Array make_array(const Dims& shape, std::span<const float> values) { return copy(NumberType::kF32, shape, values); }
Array make_array(const Dims& shape, std::span<const int32_t> values) { return copy(NumberType::kI32, shape, values); }

}  // namespace espalier

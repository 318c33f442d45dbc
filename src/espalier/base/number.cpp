#include "espalier/base/number.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "espalier/base/error.h"

namespace espalier {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little endian, and are read without swapping");

struct Half {
  uint16_t bits;
  // IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
  explicit operator float() const {
    uint32_t sign = uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 31u, mantissa = bits & 1023u;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13);  // infinities, NaN with its payload
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
    float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -subnormal : subnormal;
  }
};

struct BFloat16 {
  uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// Any byte but 0 is true, so that no bit pattern of a file is undefined behaviour.
struct Bool {
  uint8_t byte;
  explicit operator int32_t() const { return byte != 0; }
};

template <class From, class To>
To converted(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return converted<float, To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return static_cast<To>(static_cast<int32_t>(value));
  } else if constexpr (std::is_floating_point_v<To> || (std::is_integral_v<From> && sizeof(From) < sizeof(To))) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    auto wide = static_cast<double>(value);
    if (wide != wide) return 0;
    return static_cast<To>(
        std::clamp(wide, static_cast<double>(std::numeric_limits<To>::min()), static_cast<double>(std::numeric_limits<To>::max())));
  } else if constexpr (std::is_signed_v<From>) {
    return static_cast<To>(std::clamp<From>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else {
    return static_cast<To>(std::min<From>(value, static_cast<From>(std::numeric_limits<To>::max())));
  }
}

template <class From, class To>
void convert_each(const void* from, int64_t count, To* out) {
  if constexpr (std::is_same_v<From, To>) {
    if (count > 0) std::memcpy(out, from, static_cast<size_t>(count) * sizeof(To));
  } else {
    const auto* in = static_cast<const unsigned char*>(from);
    for (int64_t i = 0; i < count; ++i) {
      From value;
      std::memcpy(&value, in + static_cast<size_t>(i) * sizeof(From), sizeof(From));
      out[i] = converted<From, To>(value);
    }
  }
}

template <class To>
void convert_any(NumberType type, const void* from, int64_t count, To* out) {
  switch (type) {
    case NumberType::kBool:
      return convert_each<Bool>(from, count, out);
    case NumberType::kI8:
      return convert_each<int8_t>(from, count, out);
    case NumberType::kU8:
      return convert_each<uint8_t>(from, count, out);
    case NumberType::kI16:
      return convert_each<int16_t>(from, count, out);
    case NumberType::kU16:
      return convert_each<uint16_t>(from, count, out);
    case NumberType::kI32:
      return convert_each<int32_t>(from, count, out);
    case NumberType::kU32:
      return convert_each<uint32_t>(from, count, out);
    case NumberType::kI64:
      return convert_each<int64_t>(from, count, out);
    case NumberType::kU64:
      return convert_each<uint64_t>(from, count, out);
    case NumberType::kF16:
      return convert_each<Half>(from, count, out);
    case NumberType::kBF16:
      return convert_each<BFloat16>(from, count, out);
    case NumberType::kF32:
      return convert_each<float>(from, count, out);
    case NumberType::kF64:
      return convert_each<double>(from, count, out);
  }
  ESPALIER_ASSERT(false);
}

template <class Word>
void swap_each(void* numbers, int64_t count) {
  auto* bytes = static_cast<unsigned char*>(numbers);
  for (int64_t i = 0; i < count; ++i, bytes += sizeof(Word)) std::reverse(bytes, bytes + sizeof(Word));
}

}  // namespace

int64_t size_of(NumberType type) {
  constexpr int64_t kSizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kSizes[static_cast<size_t>(type)];
}

const char* to_string(NumberType type) {
  constexpr const char* kNames[] = {"bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"};
  return kNames[static_cast<size_t>(type)];
}

void convert(NumberType type, const void* from, int64_t count, float* out) { convert_any(type, from, count, out); }
void convert(NumberType type, const void* from, int64_t count, int32_t* out) { convert_any(type, from, count, out); }
void convert(NumberType type, const void* from, int64_t count, double* out) { convert_any(type, from, count, out); }

void swap_bytes(void* numbers, int64_t count, int64_t size) {
  if (size == 2) swap_each<uint16_t>(numbers, count);
  if (size == 4) swap_each<uint32_t>(numbers, count);
  if (size == 8) swap_each<uint64_t>(numbers, count);
}

}  // namespace espalier

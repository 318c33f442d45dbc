#pragma once
// The number formats that files hold, and their conversion to the two that the program computes with. Not here: narrowing to 16 bits.
#include <cstdint>

namespace espalier {

enum class NumberType : uint8_t { kBool, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kBF16, kF32, kF64 };
int64_t size_of(NumberType type);
const char* to_string(NumberType type);  // "bool", "i8" ... "f64"
inline bool is_integer(NumberType type) { return type < NumberType::kF16; }

// `count` numbers at `from` (little endian, any alignment) into `out`. Floats round to nearest; beyond f32 they become infinite.
void convert(NumberType type, const void* from, int64_t count, float* out);
// Fractions are cut off; values beyond 32 bits become the nearest that fits; NaN becomes 0.
void convert(NumberType type, const void* from, int64_t count, int32_t* out);
// Exact but for 64-bit integers beyond 2^53.
void convert(NumberType type, const void* from, int64_t count, double* out);

// Turns big endian numbers of `size` bytes into little endian ones, in place.
void swap_bytes(void* numbers, int64_t count, int64_t size);

}  // namespace espalier

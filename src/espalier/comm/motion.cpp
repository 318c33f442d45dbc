#include "espalier/comm/motion.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace espalier {
namespace {

constexpr int64_t kWord = 4;      // bytes of every element type
constexpr int64_t kChunk = 1024;  // elements: 4 KiB stay in the first-level cache however many sources are added to them

// Calls run(from_offset, to_offset, length), in elements, for each contiguous run that the box has on both sides.
template <class Run>
void for_each_run(const Piece& piece, const Dims& to_shape, Run run) {
  const int rank = piece.shape.rank();
  int outer = rank;
  int64_t length = 1, to_stride = 1, from_stride = 1;
  while (outer > 0) {
    --outer;
    length *= piece.shape[outer];
    if (piece.shape[outer] != to_shape[outer] || piece.shape[outer] != piece.from_shape[outer]) break;
  }
  const Dims to_strides = row_major_strides(to_shape), from_strides = row_major_strides(piece.from_shape);
  int64_t to = 0, from = 0;
  for (int d = 0; d < rank; ++d) to += piece.to[d] * to_strides[d], from += piece.from[d] * from_strides[d];
  if (outer == 0) return run(from, to, length);
  // The innermost of the outer dims is a plain loop; the rest count like an odometer.
  const int64_t rows = piece.shape[outer - 1];
  to_stride = to_strides[outer - 1], from_stride = from_strides[outer - 1];
  Dims at = Dims::filled(rank, 0);
  while (true) {
    for (int64_t row = 0; row < rows; ++row) run(from + row * from_stride, to + row * to_stride, length);
    int d = outer - 2;
    for (; d >= 0; --d) {
      to += to_strides[d], from += from_strides[d];
      if (++at[d] < piece.shape[d]) break;
      to -= at[d] * to_strides[d], from -= at[d] * from_strides[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

const float* floats(const void* source, int64_t offset) { return static_cast<const float*>(source) + offset; }

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  float operator()(float a, float b) const { return a < b || b != b ? b : a; }
  int32_t operator()(int32_t a, int32_t b) const { return std::max(a, b); }
};

// A left fold over the sources, chunk by chunk in a local buffer: `to` is written only when all sources of the chunk are read, so it may be
// one of them.
template <class T, class Combine>
void fold(const void* const* sources, int64_t count, int64_t offset, int64_t length, T* to, Combine combine) {
  auto source = [&](int64_t s, int64_t begin) { return static_cast<const T*>(sources[s]) + offset + begin; };
  alignas(64) T sum[kChunk];
  for (int64_t begin = 0; begin < length; begin += kChunk) {
    const int64_t n = std::min(kChunk, length - begin);
    int64_t s = 2;
    if (count == 1) {
      std::memmove(to + begin, source(0, begin), static_cast<size_t>(n) * sizeof(T));
      continue;
    }
    const T *a = source(0, begin), *b = source(1, begin);
    for (int64_t i = 0; i < n; ++i) sum[i] = combine(a[i], b[i]);
    for (; s + 1 < count; s += 2) {
      a = source(s, begin), b = source(s + 1, begin);
      for (int64_t i = 0; i < n; ++i) sum[i] = combine(combine(sum[i], a[i]), b[i]);
    }
    if (s < count) {
      a = source(s, begin);
      for (int64_t i = 0; i < n; ++i) sum[i] = combine(sum[i], a[i]);
    }
    std::memcpy(to + begin, sum, static_cast<size_t>(n) * sizeof(T));
  }
}

void log_sum_exp(const void* const* sources, int64_t count, int64_t offset, int64_t length, float* to) {
  for (int64_t i = 0; i < length; ++i) {
    float largest = *floats(sources[0], offset + i);
    for (int64_t s = 1; s < count; ++s) largest = Max()(largest, *floats(sources[s], offset + i));
    float sum = 0;
    if (std::isfinite(largest))
      for (int64_t s = 0; s < count; ++s) sum += std::exp(*floats(sources[s], offset + i) - largest);
    to[i] = std::isfinite(largest) ? largest + std::log(sum) : largest;  // all -inf, one +inf or a NaN: the maximum is the answer
  }
}

}  // namespace

void reduce_run(Reduction reduction, DType dtype, const void* const* sources, int64_t count, int64_t offset, int64_t length, void* to) {
  auto fold_as = [&](auto combine) {
    if (dtype == DType::kF32) return fold(sources, count, offset, length, static_cast<float*>(to), combine);
    return fold(sources, count, offset, length, static_cast<int32_t*>(to), combine);
  };
  switch (reduction) {
    case Reduction::kSum:
      return fold_as(Sum());
    case Reduction::kMax:
      return fold_as(Max());
    case Reduction::kLogSumExp:
      return log_sum_exp(sources, count, offset, length, static_cast<float*>(to));
  }
}

void copy_piece(const Piece& piece, const Dims& to_shape, const void* source, void* to) {
  auto* from_bytes = static_cast<const std::byte*>(source);
  auto* to_bytes = static_cast<std::byte*>(to);
  for_each_run(piece, to_shape, [&](int64_t from_offset, int64_t to_offset, int64_t length) {
    std::byte* at = to_bytes + to_offset * kWord;
    const std::byte* source_at = from_bytes + from_offset * kWord;
    if (at != source_at) std::memcpy(at, source_at, static_cast<size_t>(length * kWord));  // a part may lie in its place already
  });
}

void reduce_piece(const Piece& piece, const Dims& to_shape, Reduction reduction, DType dtype, const void* const* sources, int64_t count,
                  void* to) {
  auto* to_bytes = static_cast<std::byte*>(to);
  for_each_run(piece, to_shape, [&](int64_t from_offset, int64_t to_offset, int64_t length) {
    reduce_run(reduction, dtype, sources, count, from_offset, length, to_bytes + to_offset * kWord);
  });
}

}  // namespace espalier

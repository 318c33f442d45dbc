#pragma once
// What a product made of small ones consists of: dims cut into blocks, libxsmm's kernels for blocks of every size that occurs, and copies
// and transposes of blocks into the form that these read fastest. For blocked_product.cpp alone.
#include <libxsmm.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "espalier/base/error.h"

namespace espalier::ops {

// libxsmm's matrices are column-major: its m runs along our columns, its n along our rows, and its first operand is our second.
using SmallKernel = libxsmm_smmfunction;

enum class Sum { kStart, kGoOn };  // c = a b, or c += a b

// A dim that is divided over threads in whole units, as equally as they allow, and each part into blocks.
struct Part {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
class Cut {
 public:
  Cut() = default;
  Cut(int64_t size, int64_t block, int parts = 1, int64_t unit = 1) : size_(size), unit_(unit), parts_(parts) {
    int64_t largest = 0;
    for (int i = 0; i < parts; ++i) largest = std::max(largest, part(i).size());
    sizes_[0] = std::min(block, largest);
    for (int i = 0; i < parts; ++i)
      if (const int64_t rest = part(i).size() % sizes_[0]; rest != 0 && rest != sizes_[1]) {
        ESPALIER_ASSERT(sizes_[2] == 0 || sizes_[2] == rest);
        (sizes_[1] == 0 ? sizes_[1] : sizes_[2]) = rest;
      }
  }

  static constexpr size_t kSizes = 3;
  int64_t block() const { return sizes_[0]; }
  const std::array<int64_t, kSizes>& sizes() const { return sizes_; }  // of its blocks: whole ones and up to two rests; 0 for none
  size_t which(int64_t size) const { return size == sizes_[0] ? 0 : size == sizes_[1] ? 1 : 2; }

  // The whole dim where it is not divided, whichever thread asks.
  Part part(int i) const {
    if (parts_ == 1) return {0, size_};
    const int64_t units = (size_ + unit_ - 1) / unit_;
    return {std::min(size_, units * i / parts_ * unit_), std::min(size_, units * (i + 1) / parts_ * unit_)};
  }

 private:
  int64_t size_ = 0, unit_ = 1;
  int parts_ = 1;
  std::array<int64_t, kSizes> sizes_{};
};

// The small products for every size that a block may have.
class BlockKernels {
 public:
  BlockKernels() = default;
  BlockKernels(const Cut& rows, const Cut& columns, const Cut& depth, int64_t a_stride, int64_t b_stride, int64_t c_stride)
      : rows_(rows), columns_(columns), depth_(depth) {
    for (int64_t m : rows.sizes())
      for (int64_t n : columns.sizes())
        for (int64_t k : depth.sizes())
          for (Sum sum : {Sum::kStart, Sum::kGoOn})
            if (m > 0 && n > 0 && k > 0) make(at(m, n, k, sum), m, n, k, a_stride, b_stride, c_stride, sum);
  }

  bool complete() const { return complete_; }
  const Cut& rows() const { return rows_; }
  const Cut& columns() const { return columns_; }
  const Cut& depth() const { return depth_; }

  void operator()(int64_t rows, int64_t columns, int64_t depth, Sum sum, const float* a, const float* b, float* c) const {
    kernels_[at(rows, columns, depth, sum)](b, a, c);
  }

 private:
  size_t at(int64_t rows, int64_t columns, int64_t depth, Sum sum) const {
    return ((rows_.which(rows) * Cut::kSizes + columns_.which(columns)) * Cut::kSizes + depth_.which(depth)) * 2 + (sum == Sum::kGoOn);
  }

  void make(size_t at, int64_t m, int64_t n, int64_t k, int64_t a_stride, int64_t b_stride, int64_t c_stride, Sum sum) {
    auto narrow = [](int64_t size) { return static_cast<libxsmm_blasint>(size); };
    const libxsmm_blasint lda = narrow(b_stride), ldb = narrow(a_stride), ldc = narrow(c_stride);
    const float alpha = 1, beta = sum == Sum::kGoOn ? 1 : 0;
    const int flags = LIBXSMM_GEMM_FLAG_NONE, prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    kernels_[at] = libxsmm_smmdispatch(narrow(n), narrow(m), narrow(k), &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
    complete_ = complete_ && kernels_[at] != nullptr;
  }

  Cut rows_, columns_, depth_;
  bool complete_ = true;
  std::array<SmallKernel, 2 * Cut::kSizes * Cut::kSizes * Cut::kSizes> kernels_{};
};

// Calls f(i) for those of `parts` that fall to the calling thread: OpenMP may give a smaller team than it was asked for.
template <class F>
void for_own_parts(int parts, const F& f) {
  for (int i = omp_get_thread_num(); i < parts; i += omp_get_num_threads()) f(i);
}

// Calls f(begin, size) for the blocks of a part.
template <class F>
void for_blocks(Part part, int64_t block, const F& f) {
  for (int64_t i = part.begin; i < part.end; i += block) f(i, std::min(block, part.end - i));
}

// Has lines brought into the second-level cache that are needed soon.
inline void prefetch(const float* from, int64_t stride, int64_t rows, int64_t columns) {
  constexpr int64_t kLine = 16;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t x = 0; x < columns; x += kLine) __builtin_prefetch(from + r * stride + x, 0, 2);
}

// Four floats in a register: what every 64-bit machine has, and all that moving them around takes.
using Four = float __attribute__((vector_size(16)));

inline Four load(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}
inline void store(Four four, float* to) { std::memcpy(to, &four, sizeof four); }
inline Four interleave_low(Four a, Four b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
inline Four interleave_high(Four a, Four b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

constexpr int64_t kSide = 16;  // floats of a cache line
using Square = float[kSide][kSide];

// to[j][i] = square[i][j], four by four.
inline void transpose_square(const Square& square, float* to, int64_t to_stride) {
  for (int64_t j = 0; j < kSide; j += 4)
    for (int64_t i = 0; i < kSide; i += 4) {
      const Four r0 = load(&square[i][j]), r1 = load(&square[i + 1][j]), r2 = load(&square[i + 2][j]), r3 = load(&square[i + 3][j]);
      const Four low_even = interleave_low(r0, r2), high_even = interleave_high(r0, r2);
      const Four low_odd = interleave_low(r1, r3), high_odd = interleave_high(r1, r3);
      float* row = to + j * to_stride + i;
      store(interleave_low(low_even, low_odd), row);
      store(interleave_high(low_even, low_odd), row + to_stride);
      store(interleave_low(high_even, high_odd), row + 2 * to_stride);
      store(interleave_high(high_even, high_odd), row + 3 * to_stride);
    }
}

// to[j][i] = from[i][j], by squares that read and write each cache line once.
inline void transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for_blocks({0, columns}, kSide, [&](int64_t j, int64_t width) {
    for_blocks({0, rows}, kSide, [&](int64_t i, int64_t height) {
      if (width < kSide || height < kSide) {
        for (int64_t r = i; r < i + height; ++r)
          for (int64_t c = j; c < j + width; ++c) to[c * to_stride + r] = from[r * from_stride + c];
        return;
      }
      alignas(64) Square square;
      for (int64_t r = 0; r < kSide; ++r) std::memcpy(square[r], from + (i + r) * from_stride + j, sizeof square[r]);
      transpose_square(square, to + j * to_stride + i, to_stride);
    });
  });
}

inline void copy_scaled(const float* from, float* to, int64_t n, float scale) {
  for (int64_t i = 0; i < n; ++i) to[i] = scale * from[i];
}

constexpr int64_t kAhead = 8;  // rows between what is copied and what is fetched

// Of rows that come from memory: those of the next ones that are needed soon are fetched ahead.
inline void copy_block(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    prefetch(from + std::min(r + kAhead, rows - 1) * from_stride, from_stride, 1, columns);
    std::memcpy(to + r * to_stride, from + r * from_stride, static_cast<size_t>(columns) * sizeof(float));
  }
}

constexpr int64_t kPanelColumns = 32;

// As panels of `rows` x kPanelColumns, one after the other; what the last lacks in columns is left as it is.
inline void pack_panels(const float* from, int64_t from_stride, float* to, int64_t rows, int64_t columns) {
  const int64_t whole = columns / kPanelColumns * kPanelColumns;
  for (int64_t r = 0; r < rows; ++r, from += from_stride, to += kPanelColumns) {
    if (r + kAhead < rows) prefetch(from + kAhead * from_stride, from_stride, 1, columns);
    for (int64_t j = 0; j < whole; j += kPanelColumns) std::memcpy(to + j * rows, from + j, kPanelColumns * sizeof(float));  // no call
    if (whole < columns) std::memcpy(to + whole * rows, from + whole, static_cast<size_t>(columns - whole) * sizeof(float));
  }
}

}  // namespace espalier::ops

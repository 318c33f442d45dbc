#include "espalier/ops/blocked_product.h"

#include <libxsmm.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>

namespace espalier::ops {
namespace {

// Sizes of blocks, in elements: those of a 1 MiB second-level cache, which holds an operand's block of at most 512 KiB while the other one
// and c stream by.
constexpr int64_t kForwardColumns = 128, kForwardDepth = 512;  // the block of b, copied
// For few rows of a, which do not pay for copies, b goes by in place: in shallow blocks when it comes from memory, so that several rows of
// it stream at once, in deep ones when it is in the cache.
constexpr int64_t kFewRows = 64, kThinColumns = 256, kShallow = 16, kDeep = 128, kDeepElements = 1 << 19;
constexpr int64_t kThinResult = 1 << 17;                             // elements of c that stay in the cache meanwhile
constexpr int64_t kGroupRows = 128, kPanelRows = 64;                 // rows of a that are transposed at a time, and those of one panel
constexpr int64_t kTransposedColumns = 12, kTransposedDepth = 1024;  // the block of b, in place
constexpr int64_t kOuterColumns = 256, kOuterDepth = 512;            // the block of b, copied
constexpr int64_t kOuterRows = 96;                                   // rows of c at a time
constexpr int64_t kFewTerms = 64, kThinOuterColumns = 512, kThinOuterRows = 16;

// libxsmm's matrices are column-major: its m runs along our columns, its n along our rows, and its first operand is our second.
using SmallKernel = libxsmm_smmfunction;

enum class Sum { kStart, kGoOn };  // c = a b, or c += a b

// One shape of block has up to 16 kernels: each of the three sizes may be the rest at the end of a dim.
class BlockKernels {
 public:
  BlockKernels() = default;
  // Blocks of rows x columns x depth over m x n x k; strides of our a, b and c.
  BlockKernels(int64_t rows, int64_t columns, int64_t depth, int64_t m, int64_t n, int64_t k, int64_t a_stride, int64_t b_stride,
               int64_t c_stride)
      : rows_(std::min(rows, m)), columns_(std::min(columns, n)), depth_(std::min(depth, k)) {
    for (int rest_m = 0; rest_m < 2; ++rest_m)
      for (int rest_n = 0; rest_n < 2; ++rest_n)
        for (int rest_k = 0; rest_k < 2; ++rest_k)
          for (Sum sum : {Sum::kStart, Sum::kGoOn}) {
            const int64_t bm = rest_m ? m % rows_ : rows_, bn = rest_n ? n % columns_ : columns_, bk = rest_k ? k % depth_ : depth_;
            if (bm > 0 && bn > 0 && bk > 0) make(index(rest_m, rest_n, rest_k, sum), bm, bn, bk, a_stride, b_stride, c_stride, sum);
          }
  }

  bool complete() const { return complete_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t depth() const { return depth_; }

  void operator()(int64_t rows, int64_t columns, int64_t depth, Sum sum, const float* a, const float* b, float* c) const {
    kernels_[index(rows < rows_, columns < columns_, depth < depth_, sum)](b, a, c);
  }

 private:
  static size_t index(bool rest_m, bool rest_n, bool rest_k, Sum sum) {
    return static_cast<size_t>(rest_m) << 3 | static_cast<size_t>(rest_n) << 2 | static_cast<size_t>(rest_k) << 1 | (sum == Sum::kGoOn);
  }

  void make(size_t at, int64_t m, int64_t n, int64_t k, int64_t a_stride, int64_t b_stride, int64_t c_stride, Sum sum) {
    auto narrow = [](int64_t size) { return static_cast<libxsmm_blasint>(size); };
    const libxsmm_blasint lda = narrow(b_stride), ldb = narrow(a_stride), ldc = narrow(c_stride);
    const float alpha = 1, beta = sum == Sum::kGoOn ? 1 : 0;
    const int flags = LIBXSMM_GEMM_FLAG_NONE, prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    kernels_[at] = libxsmm_smmdispatch(narrow(n), narrow(m), narrow(k), &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
    complete_ = complete_ && kernels_[at] != nullptr;
  }

  int64_t rows_ = 0, columns_ = 0, depth_ = 0;
  bool complete_ = true;
  std::array<SmallKernel, 16> kernels_{};
};

// Calls f(begin, size) for the blocks of [begin, end).
template <class F>
void for_blocks(int64_t begin, int64_t end, int64_t block, const F& f) {
  for (int64_t i = begin; i < end; i += block) f(i, std::min(block, end - i));
}

struct Part {
  int64_t begin, end;
};
// At most `block`, so that each thread gets as many blocks as the others.
int64_t even_block(int64_t size, int64_t block, int threads) {
  const int64_t blocks = threads * ((size + threads * block - 1) / (threads * block));
  return (size + blocks - 1) / blocks;
}
// This thread's part of `size`, in whole blocks.
Part own_part(int64_t size, int64_t block) {
  const int64_t blocks = (size + block - 1) / block, threads = omp_get_num_threads(), thread = omp_get_thread_num();
  return {std::min(size, blocks * thread / threads * block), std::min(size, blocks * (thread + 1) / threads * block)};
}

// Four floats in a register: what every 64-bit machine has, and all that moving them around takes.
using Four = float __attribute__((vector_size(16)));

Four load(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}
void store(Four four, float* to) { std::memcpy(to, &four, sizeof four); }
Four interleave_low(Four a, Four b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
Four interleave_high(Four a, Four b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

constexpr int64_t kSide = 16;  // floats of a cache line
using Square = float[kSide][kSide];

// to[j][i] = square[i][j], four by four.
void transpose_square(const Square& square, float* to, int64_t to_stride) {
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
void transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for_blocks(0, columns, kSide, [&](int64_t j, int64_t width) {
    for_blocks(0, rows, kSide, [&](int64_t i, int64_t height) {
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

void copy_scaled(const float* from, float* to, int64_t n, float scale) {
  for (int64_t i = 0; i < n; ++i) to[i] = scale * from[i];
}

// A product of one form, with kernels for its blocks.
class Form {
 public:
  Form(int64_t m, int64_t n, int64_t k, int threads) : m_(m), n_(n), k_(k), threads_(threads) {}
  virtual ~Form() = default;
  virtual bool complete() const = 0;
  virtual int64_t scratch_elements() const = 0;
  virtual void run(const float* a, const float* b, float* c, float* scratch, float scale) const = 0;

 protected:
  const int64_t m_, n_, k_;
  const int threads_;
};

// Each thread takes columns of c, or rows where there are too few columns. b is copied block by block when there are enough rows.
class Forward final : public Form {
 public:
  Forward(int64_t m, int64_t n, int64_t k, int64_t a_stride, int64_t b_stride, int64_t c_stride, int threads)
      : Form(m, n, k, threads), copies_(m > kFewRows), a_stride_(a_stride), b_stride_(b_stride), c_stride_(c_stride) {
    const int64_t columns = copies_ ? kForwardColumns : kThinColumns, depth = copies_                  ? kForwardDepth
                                                                              : k * n <= kDeepElements ? kDeep
                                                                                                       : kShallow;
    by_columns_ = (n + columns - 1) / columns >= threads;
    rows_ = by_columns_ ? m : (m + threads - 1) / threads;
    kernels_ = BlockKernels(rows_, columns, depth, m, n, k, a_stride, copies_ ? std::min(n, columns) : b_stride, c_stride);
  }
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return copies_ ? threads_ * block_elements() : 0; }

  void run(const float* a, const float* b, float* c, float* scratch, float) const override {
#pragma omp parallel num_threads(threads_)
    {
      const Part columns = by_columns_ ? own_part(n_, kernels_.columns()) : Part{0, n_},
                 rows = by_columns_ ? Part{0, m_} : own_part(m_, rows_);
      if (copies_)
        copied(a, b, c, scratch + omp_get_thread_num() * block_elements(), rows, columns);
      else
        in_place(a, b, c, rows, columns);
    }
  }

 private:
  int64_t block_elements() const { return kernels_.columns() * kernels_.depth(); }

  void copied(const float* a, const float* b, float* c, float* block, Part rows, Part columns) const {
    const int64_t width = kernels_.columns();
    for_blocks(columns.begin, columns.end, width, [&](int64_t j, int64_t nj) {
      for_blocks(0, k_, kernels_.depth(), [&](int64_t l, int64_t nl) {
        for (int64_t r = 0; r < nl; ++r)
          std::memcpy(block + r * width, b + (l + r) * b_stride_ + j, static_cast<size_t>(nj) * sizeof(float));
        for_blocks(rows.begin, rows.end, kernels_.rows(), [&](int64_t i, int64_t ni) {
          kernels_(ni, nj, nl, l == 0 ? Sum::kStart : Sum::kGoOn, a + i * a_stride_ + l, block, c + i * c_stride_ + j);
        });
      });
    });
  }

  // b goes by once, a strip of columns at a time, so that its part of c stays in the cache.
  void in_place(const float* a, const float* b, float* c, Part rows, Part columns) const {
    const int64_t width = kernels_.columns(), strip = std::max(width, kThinResult / m_ / width * width);
    for_blocks(columns.begin, columns.end, strip, [&](int64_t first, int64_t size) {
      for_blocks(0, k_, kernels_.depth(), [&](int64_t l, int64_t nl) {
        for_blocks(first, first + size, width, [&](int64_t j, int64_t nj) {
          for_blocks(rows.begin, rows.end, kernels_.rows(), [&](int64_t i, int64_t ni) {
            kernels_(ni, nj, nl, l == 0 ? Sum::kStart : Sum::kGoOn, a + i * a_stride_ + l, b + l * b_stride_ + j, c + i * c_stride_ + j);
          });
        });
      });
    });
  }

  bool copies_, by_columns_ = true;
  int64_t rows_ = 0, a_stride_, b_stride_, c_stride_;
  BlockKernels kernels_;
};

// c^T (n, m) = b (n, k) a^T (k, m), for a group of rows of a at a time: they are transposed into panels, c^T comes out in panels too.
class Transposed final : public Form {
 public:
  Transposed(int64_t m, int64_t n, int64_t k, int64_t a_stride, int64_t b_stride, int64_t c_stride, int threads)
      : Form(m, n, k, threads),
        a_stride_(a_stride),
        b_stride_(b_stride),
        c_stride_(c_stride),
        panel_(std::min(kPanelRows, m)),
        kernels_(kTransposedColumns, panel_, kTransposedDepth, n, m, k, b_stride, panel_, panel_) {}
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return group_rows() * (k_ + n_); }

  void run(const float* a, const float* b, float* c, float* scratch, float) const override {
    float* const result = scratch + group_rows() * k_;
#pragma omp parallel num_threads(threads_)
    for_blocks(0, m_, kGroupRows, [&](int64_t first, int64_t rows) {
      const Part depth = own_part(k_, 16), columns = own_part(n_, kernels_.rows());
      for_blocks(first, first + rows, panel_, [&](int64_t i, int64_t ni) {
        transpose(a + i * a_stride_ + depth.begin, a_stride_, scratch + (i - first) * k_ + depth.begin * panel_, panel_, ni,
                  depth.end - depth.begin);
      });
#pragma omp barrier
      multiply(b, scratch, result, first, rows, columns);
      for_blocks(first, first + rows, panel_, [&](int64_t i, int64_t ni) {
        transpose(result + (i - first) * n_ + columns.begin * panel_, panel_, c + i * c_stride_ + columns.begin, c_stride_,
                  columns.end - columns.begin, ni);
      });
#pragma omp barrier
    });
  }

 private:
  int64_t group_rows() const { return (std::min(kGroupRows, m_) + panel_ - 1) / panel_ * panel_; }

  void multiply(const float* b, const float* panels, float* result, int64_t first, int64_t rows, Part columns) const {
    for_blocks(0, k_, kernels_.depth(), [&](int64_t l, int64_t nl) {
      for_blocks(columns.begin, columns.end, kernels_.rows(), [&](int64_t j, int64_t nj) {
        for_blocks(first, first + rows, panel_, [&](int64_t i, int64_t ni) {
          kernels_(nj, ni, nl, l == 0 ? Sum::kStart : Sum::kGoOn, b + j * b_stride_ + l, panels + (i - first) * k_ + l * panel_,
                   result + (i - first) * n_ + j * panel_);
        });
      });
    });
  }

  int64_t a_stride_, b_stride_, c_stride_, panel_;
  BlockKernels kernels_;
};

// Each thread takes rows of c. a is transposed, b copied into panels of columns and scaled on the way.
class Outer final : public Form {
 public:
  Outer(int64_t m, int64_t n, int64_t k, int64_t a_stride, int64_t b_stride, int64_t c_stride, ProductMode mode, int threads)
      : Form(m, n, k, threads),
        a_stride_(a_stride),
        b_stride_(b_stride),
        c_stride_(c_stride),
        mode_(mode),
        thin_(k <= kFewTerms),
        width_(std::min(thin_ ? kThinOuterColumns : kOuterColumns, n)),
        kernels_(thin_ ? kThinOuterRows : even_block(m, kOuterRows, threads), width_, kOuterDepth, m, n, k, k, width_, c_stride) {}
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return panel_elements() + m_ * k_; }

  void run(const float* a, const float* b, float* c, float* scratch, float scale) const override {
    float* const a_rows = scratch + panel_elements();
#pragma omp parallel num_threads(threads_)
    {
      const Part depth = own_part(k_, 1), rows = own_part(m_, kernels_.rows());
      transpose(a + rows.begin, a_stride_, a_rows + rows.begin * k_, k_, k_, rows.end - rows.begin);
      for (int64_t l = depth.begin; l < depth.end; ++l)
        for_blocks(0, n_, width_,
                   [&](int64_t j, int64_t nj) { copy_scaled(b + l * b_stride_ + j, scratch + j * k_ + l * width_, nj, scale); });
#pragma omp barrier
      for_blocks(rows.begin, rows.end, thin_ ? kernels_.rows() : m_, [&](int64_t first, int64_t size) {
        multiply(a_rows, scratch, c, {first, first + size});
      });
    }
  }

 private:
  void multiply(const float* a_rows, const float* panels, float* c, Part rows) const {
    for_blocks(0, n_, width_, [&](int64_t j, int64_t nj) {
      for_blocks(0, k_, kernels_.depth(), [&](int64_t l, int64_t nl) {
        for_blocks(rows.begin, rows.end, kernels_.rows(), [&](int64_t i, int64_t ni) {
          const Sum sum = mode_ == ProductMode::kAdd || l > 0 ? Sum::kGoOn : Sum::kStart;
          kernels_(ni, nj, nl, sum, a_rows + i * k_ + l, panels + j * k_ + l * width_, c + i * c_stride_ + j);
        });
      });
    });
  }

  int64_t panel_elements() const { return (n_ + width_ - 1) / width_ * width_ * k_; }

  int64_t a_stride_, b_stride_, c_stride_;
  ProductMode mode_;
  bool thin_;  // few terms a sum: c is what costs, and is gone through row by row
  int64_t width_;
  BlockKernels kernels_;
};

// A view whose `along` dim (0 rows, 1 columns) is contiguous; a dim of size 1 is whatever is asked for.
bool contiguous(const MatrixView& view, size_t along) {
  const size_t other = 1 - along;
  return view.strides[along] == 1 && view.strides[other] >= view.sizes[along];
}

std::unique_ptr<Form> choose(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode, int threads) {
  if (a.sizes.size() != 2 || !contiguous(c, 1)) return nullptr;
  for (const MatrixView* view : {&a, &b, &c})
    for (int64_t extent : {view->sizes[0], view->sizes[1], view->strides[0], view->strides[1]})
      if (extent > std::numeric_limits<libxsmm_blasint>::max()) return nullptr;
  const int64_t m = a.sizes[0], k = a.sizes[1], n = b.sizes[1];
  if (contiguous(a, 0) && contiguous(b, 1) && n >= kPanelRows)  // with less it would mostly transpose
    return std::make_unique<Outer>(m, n, k, a.strides[1], b.strides[0], c.strides[0], mode, threads);
  if (mode == ProductMode::kAdd) return nullptr;
  if (contiguous(a, 1) && contiguous(b, 1)) return std::make_unique<Forward>(m, n, k, a.strides[0], b.strides[0], c.strides[0], threads);
  if (contiguous(a, 1) && contiguous(b, 0) && k >= kPanelRows)  // likewise
    return std::make_unique<Transposed>(m, n, k, a.strides[0], b.strides[1], c.strides[0], threads);
  return nullptr;
}

}  // namespace

std::optional<MatmulPrimitive> make_blocked_product(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode,
                                                    int threads) {
  std::shared_ptr<const Form> form = choose(a, b, c, mode, threads);
  if (form == nullptr || !form->complete()) return std::nullopt;
  return MatmulPrimitive{.run =
                             [form](const ProductCall& call) {
                               form->run(static_cast<const float*>(call.a), static_cast<const float*>(call.b), static_cast<float*>(call.c),
                                         static_cast<float*>(call.scratch), call.scale);
                             },
                         .scratch_bytes = form->scratch_elements() * static_cast<int64_t>(sizeof(float))};
}

}  // namespace espalier::ops

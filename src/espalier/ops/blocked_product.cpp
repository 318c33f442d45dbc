#include "espalier/ops/blocked_product.h"

#include <libxsmm.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "espalier/base/error.h"

namespace espalier::ops {
namespace {

// Sizes in elements. Blocks of operands fit a 1 MiB second-level cache with room for what streams by. A tile of c of 14 x 64 is two blocks
// of sums that fill the registers of AVX-512.
constexpr int64_t kForwardColumns = 128, kForwardDepth = 512;  // the block of b, copied
constexpr int64_t kAhead = 8;                                  // rows of b between what is copied and what is fetched
// For few rows of a, which do not pay for copies, b goes by in place: in shallow blocks when it comes from memory, so that several rows of
// it stream at once, in deep ones when it is in the cache.
constexpr int64_t kFewRows = 64, kThinColumns = 256, kShallow = 32, kDeep = 128, kInCache = 1 << 19;
constexpr int64_t kThinResult = 1 << 17;                             // elements of c that stay in the cache meanwhile
constexpr int64_t kGroupRows = 128, kPanelRows = 64;                 // rows of a that are transposed at a time, and those of one panel
constexpr int64_t kTransposedColumns = 14, kTransposedDepth = 1024;  // the block of b, in place
constexpr int64_t kOuterColumns = 64, kOuterRows = 14, kOuterDepth = 1024;
constexpr int64_t kOuterGroup = 112;  // rows of c whose part of a is transposed at a time: whole tiles, whole cache lines of a
// For sums of few terms c is what costs: tiles are wide.
constexpr int64_t kShortSums = 128, kWideColumns = 256, kWideRows = 28;
constexpr int64_t kFewTerms = 64, kWidestColumns = 512, kWidestRows = 16;

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
void prefetch(const float* from, int64_t stride, int64_t rows, int64_t columns) {
  constexpr int64_t kLine = 16;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t x = 0; x < columns; x += kLine) __builtin_prefetch(from + r * stride + x, 0, 2);
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

void copy_scaled(const float* from, float* to, int64_t n, float scale) {
  for (int64_t i = 0; i < n; ++i) to[i] = scale * from[i];
}

// Of rows that come from memory: those of the next ones that are needed soon are fetched ahead.
void copy_block(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    prefetch(from + std::min(r + kAhead, rows - 1) * from_stride, from_stride, 1, columns);
    std::memcpy(to + r * to_stride, from + r * from_stride, static_cast<size_t>(columns) * sizeof(float));
  }
}

struct Buffers {
  const float *a, *b;
  float *c, *scratch;
};
Buffers buffers(const ProductCall& call) {
  return {static_cast<const float*>(call.a), static_cast<const float*>(call.b), static_cast<float*>(call.c),
          static_cast<float*>(call.scratch)};
}

// c (m, n) = a b, with the distance of rows in memory, or of columns where they lie together.
struct Problem {
  int64_t m, n, k;
  int64_t a_stride, b_stride, c_stride;
  ProductMode mode;
  int threads;
};

// A product of one form, with kernels for its blocks.
class Form : protected Problem {
 public:
  explicit Form(const Problem& problem) : Problem(problem) {}
  virtual ~Form() = default;
  virtual bool complete() const = 0;
  virtual int64_t scratch_elements() const = 0;
  virtual void run(const ProductCall& call) const = 0;
};

// Each thread takes columns of c, or rows where there are too few columns. b is copied block by block when it comes from memory and there
// are enough rows.
class Forward final : public Form {
 public:
  explicit Forward(const Problem& problem) : Form(problem), in_cache_(k * n <= kInCache), copies_(m > kFewRows && !in_cache_) {
    const int64_t width = copies_ ? kForwardColumns : kThinColumns;
    const bool by_columns = (n + width - 1) / width >= threads;
    const Cut rows(m, m, by_columns ? 1 : threads);
    const Cut columns(n, width, by_columns ? threads : 1, width);
    kernels_ = BlockKernels(rows, columns,
                            Cut(k, copies_     ? kForwardDepth
                                   : in_cache_ ? kDeep
                                               : kShallow),
                            a_stride, copies_ ? columns.block() : b_stride, c_stride);
  }
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return copies_ ? threads * block_elements() : 0; }

  void run(const ProductCall& call) const override {
    const Buffers at = buffers(call);
#pragma omp parallel num_threads(threads)
    for_own_parts(threads, [&](int thread) {
      const Part rows = kernels_.rows().part(thread), columns = kernels_.columns().part(thread);
      if (copies_)
        copied(at.a, at.b, at.c, at.scratch + thread * block_elements(), rows, columns);
      else
        in_place(at.a, at.b, at.c, rows, columns);
    });
  }

 private:
  int64_t block_elements() const { return kernels_.columns().block() * kernels_.depth().block(); }

  void copied(const float* a, const float* b, float* c, float* block, Part rows, Part columns) const {
    const int64_t width = kernels_.columns().block();
    for_blocks(columns, width, [&](int64_t j, int64_t nj) {
      for_blocks({0, k}, kernels_.depth().block(), [&](int64_t l, int64_t nl) {
        copy_block(b + l * b_stride + j, b_stride, block, width, nl, nj);
        for_blocks(rows, kernels_.rows().block(), [&](int64_t i, int64_t ni) {
          kernels_(ni, nj, nl, l == 0 ? Sum::kStart : Sum::kGoOn, a + i * a_stride + l, block, c + i * c_stride + j);
        });
      });
    });
  }

  // b goes by once, a strip of columns at a time, so that its part of c stays in the cache.
  void in_place(const float* a, const float* b, float* c, Part rows, Part columns) const {
    const int64_t width = kernels_.columns().block(), strip = std::max(width, kThinResult / m / width * width);
    for_blocks(columns, strip, [&](int64_t first, int64_t size) {
      for_blocks({0, k}, kernels_.depth().block(), [&](int64_t l, int64_t nl) {
        for_blocks({first, first + size}, width, [&](int64_t j, int64_t nj) {
          if (!in_cache_ && j + nj < first + size)
            prefetch(b + l * b_stride + j + nj, b_stride, nl, std::min(width, first + size - j - nj));
          else if (!in_cache_)
            prefetch(b + (l + nl) * b_stride + first, b_stride, std::min(nl, k - l - nl), width);
          for_blocks(rows, kernels_.rows().block(), [&](int64_t i, int64_t ni) {
            kernels_(ni, nj, nl, l == 0 ? Sum::kStart : Sum::kGoOn, a + i * a_stride + l, b + l * b_stride + j, c + i * c_stride + j);
          });
        });
      });
    });
  }

  bool in_cache_, copies_;
  BlockKernels kernels_;
};

// Forward with each thread summing over a part of k: it then reads those rows of b, a weight, that it also updates (Outer), and only
// partial sums move between the cores. For a b that stays in the cache and is larger than they are. The order of additions depends on the
// number of threads, as oneDNN's may.
class ByTerms final : public Form {
 public:
  explicit ByTerms(const Problem& problem)
      : Form(problem), kernels_(Cut(m, m), Cut(n, kThinColumns), Cut(k, kDeep, threads), a_stride, b_stride, c_stride) {}
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return (threads - 1) * sums_elements(); }

  void run(const ProductCall& call) const override {
    const Buffers at = buffers(call);
    const Cut to_add(m, m, threads);
    // The first part's sums are made in c.
    auto sums = [&](int thread) { return thread == 0 ? at.c : at.scratch + (thread - 1) * sums_elements(); };
#pragma omp parallel num_threads(threads)
    {
      for_own_parts(threads, [&](int thread) { multiply(at.a, at.b, sums(thread), kernels_.depth().part(thread)); });
#pragma omp barrier
      for_own_parts(threads, [&](int thread) {
        const Part rows = to_add.part(thread);
        for (int64_t i = rows.begin; i < rows.end; ++i)
          for (int other = 1; other < threads; ++other) add(sums(other) + i * c_stride, at.c + i * c_stride);
      });
    }
  }

 private:
  // Rows as far apart as those of c.
  int64_t sums_elements() const { return m * c_stride; }

  void multiply(const float* a, const float* b, float* c, Part depth) const {
    for_blocks({0, n}, kernels_.columns().block(), [&](int64_t j, int64_t nj) {
      for_blocks(depth, kernels_.depth().block(), [&](int64_t l, int64_t nl) {
        kernels_(m, nj, nl, l == depth.begin ? Sum::kStart : Sum::kGoOn, a + l, b + l * b_stride + j, c + j);
      });
    });
  }

  void add(const float* sums, float* c) const {
    for (int64_t j = 0; j < n; ++j) c[j] += sums[j];
  }

  BlockKernels kernels_;
};

// c^T (n, m) = b (n, k) a^T (k, m), for a group of rows of a at a time: they are transposed into panels, c^T comes out in panels too. Each
// thread takes columns of c and transposes for itself, so that none waits for another.
class Transposed final : public Form {
 public:
  explicit Transposed(const Problem& problem)
      : Form(problem),
        panel_(std::min(kPanelRows, m)),
        kernels_(Cut(n, kTransposedColumns, threads), Cut(m, panel_), Cut(k, kTransposedDepth), b_stride, panel_, panel_) {}
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return threads * panels_elements() + group_rows() * n; }

  void run(const ProductCall& call) const override {
    const Buffers at = buffers(call);
    float* const result = at.scratch + threads * panels_elements();
#pragma omp parallel num_threads(threads)
    for_own_parts(threads, [&](int thread) {
      const Part columns = kernels_.rows().part(thread);
      float* const panels = at.scratch + thread * panels_elements();
      for_blocks({0, m}, kGroupRows, [&](int64_t first, int64_t rows) {
        for_blocks({0, k}, kernels_.depth().block(), [&](int64_t l, int64_t nl) {
          for_blocks({0, rows}, panel_, [&](int64_t i, int64_t ni) {
            transpose(at.a + (first + i) * a_stride + l, a_stride, panels + i * nl, panel_, ni, nl);
          });
          multiply(at.b + l, panels, result, rows, columns, nl, l == 0 ? Sum::kStart : Sum::kGoOn);
        });
        for_blocks({0, rows}, panel_, [&](int64_t i, int64_t ni) {
          transpose(result + i * n + columns.begin * panel_, panel_, at.c + (first + i) * c_stride + columns.begin, c_stride,
                    columns.size(), ni);
        });
      });
    });
  }

 private:
  int64_t group_rows() const { return (std::min(kGroupRows, m) + panel_ - 1) / panel_ * panel_; }
  int64_t panels_elements() const { return group_rows() * kernels_.depth().block(); }

  void multiply(const float* b, const float* panels, float* result, int64_t rows, Part columns, int64_t depth, Sum sum) const {
    for_blocks(columns, kernels_.rows().block(), [&](int64_t j, int64_t nj) {
      for_blocks({0, rows}, panel_, [&](int64_t i, int64_t ni) {
        kernels_(nj, ni, depth, sum, b + j * b_stride, panels + i * depth, result + i * n + j * panel_);
      });
    });
  }

  int64_t panel_;
  BlockKernels kernels_;
};

// Each thread takes rows of c, and transposes those of a as it needs them. b is read in place while it stays in the cache; else, or to
// be scaled, all threads together copy it into panels of columns.
class Outer final : public Form {
 public:
  explicit Outer(const Problem& problem)
      : Form(problem),
        copies_(k * n > kInCache || mode == ProductMode::kAdd),
        width_(std::min(tile_of(k).columns, n)),
        kernels_(Cut(m, tile_of(k).rows, threads), Cut(n, width_), Cut(k, kOuterDepth), k, copies_ ? width_ : b_stride,
                 mode == ProductMode::kHandOver ? n : c_stride) {}
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return panels_elements() + threads * thread_elements(); }

  void run(const ProductCall& call) const override {
    const Buffers at = buffers(call);
    const Cut to_copy(k, k, threads);
#pragma omp parallel num_threads(threads)
    {
      if (copies_) {
        for_own_parts(threads, [&](int thread) { copy_panels(at, to_copy.part(thread), call.scale); });
#pragma omp barrier
      }
      for_own_parts(threads, [&](int thread) {
        multiply_rows(at, call.consume, kernels_.rows().part(thread), at.scratch + panels_elements() + thread * thread_elements());
      });
    }
  }

 private:
  struct Tile {
    int64_t rows, columns;
  };
  static Tile tile_of(int64_t terms) {
    if (terms <= kFewTerms) return {kWidestRows, kWidestColumns};
    if (terms <= kShortSums) return {kWideRows, kWideColumns};
    return {kOuterRows, kOuterColumns};
  }

  void copy_panels(const Buffers& at, Part depth, float scale) const {
    for (int64_t l = depth.begin; l < depth.end; ++l)
      for_blocks({0, n}, width_,
                 [&](int64_t j, int64_t nj) { copy_scaled(at.b + l * b_stride + j, at.scratch + j * k + l * width_, nj, scale); });
  }

  void multiply_rows(const Buffers& at, const Consume* consume, Part rows, float* a_rows) const {
    const float* const b = copies_ ? at.scratch : at.b;
    float* const tiles = a_rows + kOuterGroup * k;  // a row of them, to hand over
    for_blocks(rows, kOuterGroup, [&](int64_t first, int64_t size) {
      transpose(at.a + first, a_stride, a_rows, k, k, size);
      for_blocks({0, size}, kernels_.rows().block(), [&](int64_t i, int64_t ni) {
        if (mode == ProductMode::kHandOver) {
          multiply(a_rows + i * k, b, tiles, ni, false);
          (*consume)((first + i) * n, ni * n, tiles);
        } else {
          multiply(a_rows + i * k, b, at.c + (first + i) * c_stride, ni, k > kShortSums);
        }
      });
    });
  }

  // A row of tiles, each fetched from memory while the one before it is made.
  void multiply(const float* a_rows, const float* b, float* c, int64_t rows, bool fetch) const {
    for_blocks({0, n}, width_, [&](int64_t j, int64_t nj) {
      if (fetch) prefetch(j + nj < n ? c + j + nj : c + rows * c_stride, c_stride, rows, width_);
      for_blocks({0, k}, kernels_.depth().block(), [&](int64_t l, int64_t nl) {
        const Sum sum = mode == ProductMode::kAdd || l > 0 ? Sum::kGoOn : Sum::kStart;
        kernels_(rows, nj, nl, sum, a_rows + l, copies_ ? b + j * k + l * width_ : b + l * b_stride + j, c + j);
      });
    });
  }

  // What a thread has for itself.
  int64_t thread_elements() const { return kOuterGroup * k + (mode == ProductMode::kHandOver ? kernels_.rows().block() * n : 0); }
  int64_t panels_elements() const { return copies_ ? (n + width_ - 1) / width_ * width_ * k : 0; }

  bool copies_;
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
  auto problem = [&](size_t a_apart, size_t b_apart) {
    return Problem{m, n, k, a.strides[a_apart], b.strides[b_apart], c.strides[0], mode, threads};
  };
  // Where the other library is as fast or faster, it has the product: with few columns mostly zeros would be multiplied, with few terms
  // mostly transposed, and a b that stays in the cache costs it little to copy.
  if (contiguous(a, 0) && contiguous(b, 1) && n >= kPanelRows) return std::make_unique<Outer>(problem(1, 0));
  if (mode != ProductMode::kWrite) return nullptr;
  const bool forward = contiguous(a, 1) && contiguous(b, 1) && n >= kSide;
  if (forward && threads > 1 && m > kFewRows && k * n <= kInCache && threads * m < k) return std::make_unique<ByTerms>(problem(0, 0));
  if (forward) return std::make_unique<Forward>(problem(0, 0));
  if (contiguous(a, 1) && contiguous(b, 0) && k >= kPanelRows && (m <= kFewRows || k * n > kInCache))
    return std::make_unique<Transposed>(problem(0, 1));
  return nullptr;
}

}  // namespace

std::optional<MatmulPrimitive> make_blocked_product(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode,
                                                    int threads) {
  std::shared_ptr<const Form> form = choose(a, b, c, mode, threads);
  if (form == nullptr || !form->complete()) return std::nullopt;
  return MatmulPrimitive{.run = [form](const ProductCall& call) { form->run(call); },
                         .scratch_bytes = form->scratch_elements() * static_cast<int64_t>(sizeof(float))};
}

}  // namespace espalier::ops

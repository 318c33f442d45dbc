#include "espalier/ops/blocked_product.h"

#include <limits>
#include <memory>

#include "espalier/ops/blocks.h"

namespace espalier::ops {
namespace {

// Sizes in elements. What is best depends on how many sums the processor's registers hold.
struct Tile {
  int64_t rows, columns;
};
struct Blocking {
  bool wide;         // 32 registers of 16: AVX-512
  int64_t few_rows;  // of a, which do not pay for copies
  // Transposed: rows of a that are transposed at a time, those of one panel, and the block of b, in place.
  int64_t group, panel, columns, depth;
  // Outer: rows of c whose part of a is transposed at a time (whole tiles, whole cache lines of a), and the tile of c by the terms of a
  // sum. Of sums of few terms c is what costs: tiles are wide.
  int64_t outer_group;
  Tile many_terms, short_sums, few_terms;
};
constexpr int64_t kShortSums = 128, kFewTerms = 64;

// Blocks of operands fit a 1 MiB second-level cache with room for what streams by. A tile of c of 14 x 64 is two blocks of sums that fill
// the registers.
constexpr Blocking kWide{.wide = true,
                         .few_rows = 64,
                         .group = 128,
                         .panel = 64,
                         .columns = 14,
                         .depth = 1024,
                         .outer_group = 112,
                         .many_terms = {14, 64},
                         .short_sums = {28, 256},
                         .few_terms = {16, 512}};
// 16 registers of 8 hold sums of 3 x 32: operands are packed 32 columns wide, a panel that passes from the second-level cache (512 KiB)
// to the first as fast as it is used, and many rows go by each panel.
constexpr Blocking kNarrow{.wide = false,
                           .few_rows = 16,
                           .group = 256,
                           .panel = kPanelColumns,
                           .columns = 24,
                           .depth = 512,
                           .outer_group = 256,
                           .many_terms = {256, kPanelColumns},
                           .short_sums = {128, kPanelColumns},
                           .few_terms = {128, kPanelColumns}};
const Blocking& blocking() { return libxsmm_get_target_archid() >= LIBXSMM_X86_AVX512 ? kWide : kNarrow; }

constexpr int64_t kHandOverRows = 48;                                          // of a tile, at most: there is room for rows of tiles
constexpr int64_t kForwardColumns = 128, kForwardDepth = 512;                  // the block of b, copied
constexpr int64_t kPackedColumns = 64, kPackedDepth = 512, kPackedRows = 512;  // two panels of b at once: more of its rows lies together
constexpr int64_t kWorthPacking = 1024;  // columns that a thread's block of a meets: fewer are faster from where a lies
// For few rows of a, b goes by in place: in shallow blocks when it comes from memory, so that several rows of it stream at once, in deep
// ones when it is in the cache.
constexpr int64_t kThinColumns = 256, kShallow = 32, kDeep = 128, kInCache = 1 << 19;
constexpr int64_t kThinResult = 1 << 17;  // elements of c that stay in the cache meanwhile
constexpr int64_t kLeastTerms = 64;       // that are worth transposing for
constexpr int64_t kOuterDepth = 1024;

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
  const Blocking& blocks = blocking();
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
  explicit Forward(const Problem& problem) : Form(problem), in_cache_(k * n <= kInCache), copies_(m > blocks.few_rows && !in_cache_) {
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

// Forward where registers are few: panels of b are packed, and a block of a if enough of them meet it; c is met again for each block of
// terms. Threads divide as above.
class Packed final : public Form {
 public:
  explicit Packed(const Problem& problem) : Form(problem) {
    const bool by_columns = n / kPanelColumns >= threads;
    const Cut rows(m, kPackedRows, by_columns ? 1 : threads);
    const Cut columns(n, kPanelColumns, by_columns ? threads : 1, kPanelColumns);
    const int64_t blocks_of_terms = (k + kPackedDepth - 1) / kPackedDepth;
    const Cut depth(k, (k + blocks_of_terms - 1) / blocks_of_terms);
    packs_a_ = columns.part(0).size() >= kWorthPacking;
    kernels_ = BlockKernels(rows, columns, depth, packs_a_ ? depth.block() : a_stride, kPanelColumns, c_stride);
  }
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return threads * thread_elements(); }

  void run(const ProductCall& call) const override {
    const Buffers at = buffers(call);
#pragma omp parallel num_threads(threads)
    for_own_parts(threads, [&](int thread) {
      multiply(at, at.scratch + thread * thread_elements(), kernels_.rows().part(thread), kernels_.columns().part(thread));
    });
  }

 private:
  void multiply(const Buffers& at, float* a_block, Part rows, Part columns) const {
    const int64_t width = kernels_.columns().block(), depth = kernels_.depth().block();
    float* const panels = a_block + a_elements();
    for_blocks(rows, kernels_.rows().block(), [&](int64_t i, int64_t ni) {
      for_blocks({0, k}, depth, [&](int64_t l, int64_t nl) {
        const float* const a = packs_a_ ? a_block : at.a + i * a_stride + l;
        if (packs_a_) copy_block(at.a + i * a_stride + l, a_stride, a_block, depth, ni, nl);
        for_blocks(columns, kPackedColumns, [&](int64_t first, int64_t size) {
          pack_panels(at.b + l * b_stride + first, b_stride, panels, nl, size);
          for_blocks({first, first + size}, width, [&](int64_t j, int64_t nj) {
            float* const c = at.c + i * c_stride + j;
            if (l > 0 && j + nj < columns.end) prefetch(c + nj, c_stride, ni, std::min(width, columns.end - j - nj));
            kernels_(ni, nj, nl, l == 0 ? Sum::kStart : Sum::kGoOn, a, panels + (j - first) * nl, c);
          });
        });
      });
    });
  }

  int64_t a_elements() const { return packs_a_ ? kernels_.rows().block() * kernels_.depth().block() : 0; }
  int64_t thread_elements() const { return a_elements() + kPackedColumns * kernels_.depth().block(); }

  bool packs_a_ = false;
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
        panel_(std::min(blocks.panel, m)),
        kernels_(Cut(n, blocks.columns, threads), Cut(m, panel_), Cut(k, blocks.depth), b_stride, panel_, panel_) {}
  bool complete() const override { return kernels_.complete(); }
  int64_t scratch_elements() const override { return threads * panels_elements() + group_rows() * n; }

  void run(const ProductCall& call) const override {
    const Buffers at = buffers(call);
    float* const result = at.scratch + threads * panels_elements();
#pragma omp parallel num_threads(threads)
    for_own_parts(threads, [&](int thread) {
      const Part columns = kernels_.rows().part(thread);
      float* const panels = at.scratch + thread * panels_elements();
      for_blocks({0, m}, blocks.group, [&](int64_t first, int64_t rows) {
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
  int64_t group_rows() const { return (std::min(blocks.group, m) + panel_ - 1) / panel_ * panel_; }
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
        copies_(!blocks.wide || k * n > kInCache || mode == ProductMode::kAdd),
        width_(std::min(tile().columns, n)),
        kernels_(Cut(m, tile().rows, threads), Cut(n, width_), Cut(k, kOuterDepth), k, copies_ ? width_ : b_stride,
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
  Tile tile() const {
    Tile tile = k <= kFewTerms ? blocks.few_terms : k <= kShortSums ? blocks.short_sums : blocks.many_terms;
    if (mode == ProductMode::kHandOver) tile.rows = std::min(tile.rows, kHandOverRows);
    return tile;
  }
  // Whole tiles.
  int64_t group() const { return std::max(blocks.outer_group / tile().rows, int64_t{1}) * tile().rows; }

  void copy_panels(const Buffers& at, Part depth, float scale) const {
    for (int64_t l = depth.begin; l < depth.end; ++l)
      for_blocks({0, n}, width_,
                 [&](int64_t j, int64_t nj) { copy_scaled(at.b + l * b_stride + j, at.scratch + j * k + l * width_, nj, scale); });
  }

  void multiply_rows(const Buffers& at, const Consume* consume, Part rows, float* a_rows) const {
    const float* const b = copies_ ? at.scratch : at.b;
    float* const tiles = a_rows + group() * k;  // a row of them, to hand over
    for_blocks(rows, group(), [&](int64_t first, int64_t size) {
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
  int64_t thread_elements() const { return group() * k + (mode == ProductMode::kHandOver ? kernels_.rows().block() * n : 0); }
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
  const int64_t m = a.sizes[0], k = a.sizes[1], n = b.sizes[1], few_rows = blocking().few_rows;
  auto problem = [&](size_t a_apart, size_t b_apart) {
    return Problem{m, n, k, a.strides[a_apart], b.strides[b_apart], c.strides[0], mode, threads};
  };
  // Where the other library is as fast or faster, it has the product: with few columns mostly zeros would be multiplied, with few terms
  // mostly transposed, and a b that stays in the cache costs it little to copy.
  if (contiguous(a, 0) && contiguous(b, 1) && n >= kLeastTerms) return std::make_unique<Outer>(problem(1, 0));
  if (mode != ProductMode::kWrite) return nullptr;
  const bool forward = contiguous(a, 1) && contiguous(b, 1) && n >= kSide;
  if (forward && !blocking().wide && m > few_rows) return std::make_unique<Packed>(problem(0, 0));
  if (forward && threads > 1 && m > few_rows && k * n <= kInCache && threads * m < k) return std::make_unique<ByTerms>(problem(0, 0));
  if (forward) return std::make_unique<Forward>(problem(0, 0));
  if (contiguous(a, 1) && contiguous(b, 0) && k >= kLeastTerms && (m <= few_rows || k * n > kInCache))
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

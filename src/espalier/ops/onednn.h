#pragma once
// The one door to oneDNN. Its 2.x and 3.x interfaces differ in how primitives are described; only onednn.cpp knows.
// Scratch space is always the caller's (scratchpad mode user), so that the memory plan is exact.
#include <cstdint>
#include <functional>
#include <vector>

namespace espalier::ops {

// One matrix product of float32: sizes and strides in elements of (batch..., rows, columns).
struct MatrixView {
  std::vector<int64_t> sizes, strides;
};

enum class ProductMode : uint8_t {
  kWrite,     // c = a b
  kAdd,       // c += scale a b
  kHandOver,  // there is no c: a b is handed over in parts, each by the thread that made it, while it is in the cache
};

// Takes elements [first, first + count) of the product, row by row. Called by several threads at once; must not throw.
using Consume = std::function<void(int64_t first, int64_t count, const float* values)>;

struct ProductCall {
  const void *a, *b;
  void *c, *scratch;
  float scale = 1;                   // for kAdd
  const Consume* consume = nullptr;  // for kHandOver
};

struct MatmulPrimitive {
  std::function<void(const ProductCall&)> run;  // one thread at a time
  int64_t scratch_bytes = 0;
};

// a: (batch..., m, k), b: (batch..., k, n), c: (batch..., m, n), no size 0. Any strides are right; fast are those where a row or a column
// of each lies together. Not for kHandOver. An Error when oneDNN refuses, with its words.
MatmulPrimitive make_matmul(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode, int threads);

}  // namespace espalier::ops

#pragma once
// Matrix products of two plain matrices from libxsmm's small ones: blocks that stay in the second-level cache while everything else streams
// by. Weights are read where they lie when they stay in the cache or the batch has few rows, and otherwise copied block by block while the
// block is in use; activations are transposed where that lets the weights be read as they are. oneDNN copies a weight matrix at every call,
// three times a step, which for a batch of few rows takes longer than the product. `bench/table products` compares. What is left to it is
// said where the form is chosen.
//
// Blocks, and whether they are read in place or packed, follow the processor's registers: 32 wide ones (AVX-512), or 16 narrow ones.
//
// Cores may not share a cache, and a line that one of them wrote is then slow to come by: where weights are read in place, threads divide a
// product so that each reads the part of a weight that it also updates.
//
// Three forms cover a dense layer; c is row-major in all of them:
//   forward     a (m, k) and b (k, n) row-major: activations times weights
//   transposed  b is (n, k) in memory: the gradient of a product's left operand; computed as the transpose of c, so that b need not be
//   outer       a is (k, m) in memory: the gradient of the weights, a sum over the batch k
#include <optional>

#include "espalier/ops/onednn.h"

namespace espalier::ops {

// Nothing where a form does not fit (batched products, other strides), or where libxsmm has no kernels for this machine.
std::optional<MatmulPrimitive> make_blocked_product(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode,
                                                    int threads);

}  // namespace espalier::ops

#pragma once
// Matrix products of two plain matrices from libxsmm's small ones: blocks that stay in the second-level cache, with the large operand read
// where it lies. oneDNN copies a weight matrix into blocks at every call, which a training step pays three times a layer; here only what
// is small against the work is copied: slices of a batch of rows, a panel of columns. Measured against oneDNN in bench/.
//
// Three forms cover a dense layer; c is row-major in all of them:
//   kForward   a (m, k) and b (k, n) row-major: activations times weights
//   kTransposed  b is (n, k) in memory: the gradient of a product's left operand; computed as the transpose of c, so that b need not be
//   kOuter     a is (k, m) in memory: the gradient of the weights, a sum over the batch k
#include <optional>

#include "espalier/ops/onednn.h"

namespace espalier::ops {

// Nothing where a form does not fit (batched products, other strides), or where libxsmm has no kernels for this machine.
std::optional<MatmulPrimitive> make_blocked_product(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode,
                                                    int threads);

}  // namespace espalier::ops

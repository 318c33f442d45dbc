#pragma once
// A product of two operands as an einsum ("bmk,kn->bmn"), and its mapping to one strided matrix product.
//
// Every letter stands in at least two of the three tensors: batch letters in all, m in a and the result, n in b and the result, k in a and
// b. Letters of m, of n and of k stand together in the same order wherever they stand, so that each kind is one dim of a matrix; batch
// letters may stand anywhere.
#include <string>

#include "espalier/ir/op_def.h"
#include "espalier/ops/onednn.h"

namespace espalier::ops {

struct Contraction {
  std::string a, b, result;    // the letters of each
  std::string batch, m, n, k;  // the letters of each kind, in the order of the tensor where they stand first
};

// Errors, naming `where`: another number of operands, a character that is no letter, a letter twice in one tensor, in one tensor only, or
// letters of one kind that do not stand together.
Contraction parse_contraction(const std::string& factors, const std::string& where);

// The product of two local tensors, as `threads` cores compute it; it does what sizes of 0 ask for.
MatmulPrimitive make_contraction(const Contraction& form, const Dims& a, const Dims& b, const Dims& result, ProductMode mode, int threads);

}  // namespace espalier::ops

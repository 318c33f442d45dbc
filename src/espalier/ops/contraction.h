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

// A product's rule where nothing may stay pending: what is summed over has to be whole.
FactorRule with_whole_sums(FactorRule rule);
// Two for each combination of the letters.
double product_flops(const FactorRule& rule);

// The product of an op with the attribute "factors": of its local operands `first` and the next. It does what sizes of 0 ask for.
MatmulPrimitive local_product(const LocalOp& op, size_t first, ProductMode mode);

}  // namespace espalier::ops

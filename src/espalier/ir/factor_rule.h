#pragma once
// Factor rules: what the compiler knows about an op. Every dim of every operand and result is a list of factors (major first), the
// letters of an einsum-like rule. From the rule follow the result shapes, which splits are legal without communication, which leave a
// pending reduction, local shapes, the propagation of layouts and the price of alternatives. After Shardy (OpenXLA), where the idea is
// called a factor-based sharding rule.
//
// Text form, one group a tensor, "," between operands, "->" before the results:
//   "mk,kn->mn"   m and n pass, k is in no result: splitting it leaves a pending sum
//   "mn->m"       with reduction = kLogSumExp: splitting n leaves a pending log-sum-exp
//   "m[n]->m[n]"  n has to be whole (a softmax's dim)
//   "(hd)->hd"    one dim made of two factors: a reshape
//   "ab,1b->ab"   1: a dim of size 1 that is broadcast and never cut
// A rule is bound to shapes, so factors have sizes.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/dims.h"
#include "espalier/mesh/sharding.h"

namespace espalier {

enum class FactorKind : uint8_t {
  kPass,    // in a result: free to split
  kReduce,  // in no result: splitting leaves a pending reduction
  kWhole,   // has to be gathered first
};

struct Factor {
  char letter = '?';
  FactorKind kind = FactorKind::kPass;
  int64_t size = -1;
};

using FactorDim = std::vector<int8_t>;         // factors of one dim, major first; empty: a size-1 dim
using FactorTensor = std::vector<FactorDim>;   // one entry a dim

struct FactorRule {
  std::vector<Factor> factors;
  std::vector<FactorTensor> operands, results;
  Reduction reduction = Reduction::kSum;  // of the kReduce factors

  Dims result_shape(int result) const;
};

// Reads the text form and binds sizes from the operands' shapes; `sizes` gives those of letters that stand in results only.
// Errors, naming `where`: a rank that differs from the rule's, a letter with two sizes.
FactorRule parse_rule(std::string_view text, const std::vector<Dims>& operands, const std::string& where,
                      const std::vector<std::pair<char, int64_t>>& sizes = {});

// All operands of result shape, numpy-broadcast against each other (size-1 and missing leading dims); `results` results.
FactorRule elementwise_rule(const std::vector<Dims>& operands, int results, const std::string& where);

// --- splitting ------------------------------------------------------------------------------------------------------------------
// Which mesh axes cut each factor (major first): what one op does with the mesh.
using Split = std::vector<AxisList>;  // one entry a factor

// Whether axes may cut this factor everywhere it stands. A factor that is not alone in its dim must be the dim's major one and must be
// divided evenly: only then are parts of the dim parts of the factor.
bool can_split(const FactorRule& rule, int factor, int64_t parts);
// The sharding an operand needs, and the one a result has (with its pending axes), under a split.
Sharding operand_sharding(const FactorRule& rule, int operand, const Split& split);
Sharding result_sharding(const FactorRule& rule, int result, const Split& split);

}  // namespace espalier

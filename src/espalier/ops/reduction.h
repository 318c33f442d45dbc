#pragma once
// Reductions over some dims: reading the attributes {dims, keep}, the factor rule, and the walk that all kernels share.
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier::ops {

inline const std::vector<AttrSpec> kReductionAttributes = {{"dims", AttrKind::kIntegers}, {"keep", AttrKind::kInteger}};

// The shape of a reduction's result, and of the result with every reduced dim kept as 1.
Dims kept_shape(const Dims& shape, const std::vector<int64_t>& dims);

// Dims not named pass, named ones leave a pending `reduction`. Errors: a dim outside the rank or named twice, keep other than 0 and 1.
FactorRule reduction_rule(const OpSignature& signature, Reduction reduction);

// How a local tensor is walked. Neighbouring dims of one kind are merged. A unit of work is one run of results: either one result, whose
// elements lie in contiguous runs, or up to `width` neighbouring results, whose elements lie in contiguous rows.
struct ReductionWalk {
  int64_t units = 0, elements = 0;
  bool rows = false;  // the innermost dim is kept: a unit is a block of neighbouring results
  int64_t width = 1;  // results of a full unit
  int64_t run = 1;    // contiguous elements of one visit when not `rows`
  int64_t inner = 1;  // size of the innermost kept dim when `rows`
  std::vector<int64_t> kept_sizes = {}, kept_strides = {}, reduced_sizes = {}, reduced_strides = {};  // the other dims, major first

  int64_t first_result(int64_t unit) const;  // its index in the result
  int64_t results(int64_t unit) const;       // how many results it has
  int64_t first_element(int64_t unit) const;
};
ReductionWalk reduction_walk(const Dims& shape, const std::vector<int64_t>& dims);

// Calls visit(offset) for every contiguous run (or row) of the unit, in order; offsets in elements from the unit's first.
template <class Visit>
void visit_runs(const ReductionWalk& walk, const Visit& visit) {
  int64_t count = 1, offset = 0, index[kMaxRank] = {};
  for (int64_t size : walk.reduced_sizes) count *= size;
  for (int64_t i = 0; i < count; ++i) {
    visit(offset);
    for (size_t d = walk.reduced_sizes.size(); d-- > 0;) {
      offset += walk.reduced_strides[d];
      if (++index[d] < walk.reduced_sizes[d]) break;
      offset -= walk.reduced_strides[d] * walk.reduced_sizes[d];
      index[d] = 0;
    }
  }
}

inline constexpr int64_t kReductionWidth = 256;  // results a unit keeps in first-level cache: 2 KiB of doubles

std::vector<OpSample> reduction_samples();

}  // namespace espalier::ops

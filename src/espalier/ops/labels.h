#pragma once
// What the ops that look up a class by its label share: their rules, in which the class dim n is masked. A device does only its own range
// of n; a label outside it matches nothing there, and the device that has it contributes the value.
#include "espalier/ir/graph.h"

namespace espalier::ops {

// Letters for `rank` leading dims: "ab" for 2. The class dim is 'n'.
std::string leading_letters(int rank);

// An Error, naming `where`, for a tensor without a class dim.
void need_class_dim(const Dims& shape, const std::string& where);

// The class range of a device along the last dim of a tensor.
struct ClassRange {
  int64_t offset = 0, size = 0;
  // The place of a label in the range, -1 for one outside.
  int64_t place(int32_t label) const {
    int64_t at = label - offset;
    return at >= 0 && at < size ? at : -1;
  }
};
ClassRange class_range(const LocalTensor& tensor);

// Sets the log-sum-exp operand (1) of a cross-entropy sample from its x (0).
void prepare_lse(const OpSample& sample, const std::vector<void*>& operands);

}  // namespace espalier::ops

#pragma once
// What the files of the elementwise ops share: writing gradients, and samples for the op test.
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier::ops {

// A scalar constant.
ValueId number(Builder& builder, double value);
// The sum of `gradient` over what an operand of `shape` was broadcast along: the gradient of broadcasting.
ValueId unbroadcast(Builder& builder, ValueId gradient, Dims shape);
// x at the same elements under another shape; x itself when it has that shape.
ValueId reshaped(Builder& builder, ValueId x, Dims shape);

// Shapes that meet every way an operand can be read: whole, a row, a column, a scalar, a middle dim, one element, none.
std::vector<OpSample> unary_samples(double low, double high);
std::vector<OpSample> binary_samples(double low, double high);

}  // namespace espalier::ops

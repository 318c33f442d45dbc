#pragma once
// Moving bytes as a plan says: box copies and n-source reductions, in memory that this process can read. Only contiguous runs are
// touched, as long as the box allows. All element types are 4 bytes wide. Thread-safe; allocates nothing.
#include <cstdint>

#include "espalier/comm/transfer.h"

namespace espalier {

// A piece into a buffer of shape `to_shape`, from one source buffer of shape piece.from_shape.
void copy_piece(const Piece& piece, const Dims& to_shape, const void* source, void* to);
// The same from `count` sources, combined in their order.
void reduce_piece(const Piece& piece, const Dims& to_shape, Reduction reduction, DType dtype, const void* const* sources, int64_t count,
                  void* to);

// Elements [offset, offset + length) of each source, combined in order: to[i] = sources[0][offset + i] + sources[1][offset + i] + ...
// `to` may be sources[k] + offset. A NaN in any source is in the maximum. log-sum-exp subtracts the largest first: it neither overflows
// nor turns -inf into NaN.
void reduce_run(Reduction reduction, DType dtype, const void* const* sources, int64_t count, int64_t offset, int64_t length, void* to);

}  // namespace espalier

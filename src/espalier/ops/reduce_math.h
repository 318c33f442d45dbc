#pragma once
// Inner loops of reductions, softmax and cross-entropy on contiguous floats, on Highway. A run is reduced to one value, a row is combined
// element by element with accumulators. Sums are kept in double: float32 sums over a batch would differ between meshes in the fifth digit.
// NaN in, NaN out. The order of additions depends on n only.
#include <cstdint>

namespace espalier::ops {

double sum_run(const float* x, int64_t n);
void sum_row(const float* x, double* sums, int64_t n);
// The same for rows that lie `stride` elements apart.
void sum_rows(const float* x, int64_t stride, int64_t rows, double* sums, int64_t n);

// The larger of `largest` and all of x.
float max_run(const float* x, float largest, int64_t n);
void max_row(const float* x, float* largest, int64_t n);

// Sum of exp(x - shift); x may be written out as exp(x - shift) on the way (out may be x, or null).
double exp_run(const float* x, float shift, float* out, int64_t n);
void exp_row(const float* x, const float* shift, float* out, double* sums, int64_t n);

// exp(x - shift) alone.
void shifted_exp(const float* x, float shift, float* out, int64_t n);

// What they are worth to parallel_for, in elements of a simple op: exp costs eight, and each run some 500 to begin and to end.
constexpr int64_t exp_work(int64_t runs, int64_t elements) { return 500 * runs + 8 * elements; }

void scale_run(float* x, float factor, int64_t n);

}  // namespace espalier::ops

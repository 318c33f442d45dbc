#pragma once
// Splits a kernel's work over the cores its device may use. A kernel cuts its work into units whose results do not depend on who does
// them, so that one thread and many give the same bits.
#include <algorithm>
#include <cstdint>

namespace espalier::ops {

// Fewer elements than this are done by the calling thread: waking a team costs as much as 30,000 elements of a simple op.
inline constexpr int64_t kParallelElements = 1 << 15;

// Calls f(begin, end) for consecutive parts of [0, units), each on its own thread when `elements` of work are worth it. f must not throw.
template <class F>
void parallel_for(int threads, int64_t units, int64_t elements, const F& f) {
  auto parts = static_cast<int>(std::min<int64_t>(threads, units));
  if (parts <= 1 || elements < kParallelElements) return f(int64_t{0}, units);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) f(units * part / parts, units * (part + 1) / parts);
}

}  // namespace espalier::ops

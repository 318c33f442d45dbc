#pragma once
// What an op's CPU kernel sees: one device's part of the op. No kernel needs to know that sharding exists; those whose values depend on
// the global position of an element (random numbers, one-hot over a cut range) find it in `offset`.
#include <cstdint>
#include <functional>
#include <vector>

#include "espalier/ir/attrs.h"
#include "espalier/ir/types.h"

namespace espalier {

struct LocalTensor {
  DType dtype = DType::kF32;
  Dims shape;    // this device's part, in elements; any size may be 0
  Dims offset;   // where the part begins in the logical tensor
  Dims logical;  // the shape of the logical tensor
};

struct LocalOp {
  const Attrs* attrs = nullptr;  // outlives the kernel
  std::vector<LocalTensor> operands, results;
  int threads = 1;  // cores this device may use inside one kernel
};

// The buffers of one call. Row-major, 64-byte aligned, never null for a tensor that has elements.
struct KernelCall {
  const void* const* operands;
  void* const* results;
  void* scratch;
  template <class T>
  const T* operand(int i) const { return static_cast<const T*>(operands[i]); }
  template <class T>
  T* result(int i) const { return static_cast<T*>(results[i]); }
};

// A prepared kernel: everything that depends on shapes is done once, when the program is built. Thread-safe against other kernels.
struct Kernel {
  std::function<void(const KernelCall&)> run;
  int64_t scratch_bytes = 0;  // planned in the arena like any buffer
};

}  // namespace espalier

#pragma once
// Memory: every buffer gets an offset in one arena a device, and the arena's size is the peak, exactly. State (variables, optimizer state)
// lies at its start, at offsets that all programs of a model share; behind it come the buffers of one program, placed by best fit on decreasing size
// over their lifetimes. Views share their operand's buffer, updates take over the buffer of what they replace (donation), elementwise
// ops write over an operand that dies. Kernels' scratch space is planned like any buffer.
#include <map>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier {

inline constexpr int64_t kBufferAlignment = 64;  // bytes: one cache line, one AVX-512 register

// Where the state of a model lies on one device.
struct StateVariable {
  std::string name;
  Role role = Role::kVariable;
  TensorType type;  // logical
  Sharding sharding;
};
struct StateRegion {
  std::map<std::string, int64_t> offset;
  int64_t bytes = 0;  // aligned end
};
StateRegion plan_state(const std::vector<StateVariable>& state, const DeviceMesh& mesh, int64_t device);

// Bytes alive at the instant of the peak, by what they are for; they sum to at most the arena's size.
struct MemoryUse {
  int64_t variables = 0, gradients = 0, optimizer = 0, activations = 0, communication = 0;
  int64_t total() const { return variables + gradients + optimizer + activations + communication; }
};

struct MemoryPlan {
  std::vector<int64_t> value_offset;    // one entry a value, in bytes
  std::vector<int64_t> scratch_offset;  // one entry an op
  int64_t arena_bytes = 0;
  MemoryUse peak;         // most live bytes: the lower bound of arena_bytes
  int32_t peak_op = -1;   // where
};

// `scratch`: bytes of kernel scratch of each op. The graph is partitioned; local sizes are those of `device`.
MemoryPlan plan_memory(const Graph& graph, int64_t device, const std::vector<int64_t>& scratch, const StateRegion& state);

// Devices whose local shapes (of all values and all state) agree share a class: programs are compiled once a class. Entry d is the class
// of device d; classes are numbered in order of first appearance.
std::vector<int> device_classes(const Graph& graph, const std::vector<StateVariable>& state);

}  // namespace espalier

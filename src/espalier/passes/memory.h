#pragma once
// Memory: every buffer gets an offset in one arena a device, and the arena's size is the peak, exactly. State (variables, optimizer state)
// lies at its start, at offsets that all programs of a model share; behind it come the buffers of one program, placed by best fit on
// decreasing size over their lifetimes. Views share their operand's buffer, updates take over the buffer of what they replace (donation),
// elementwise ops write over an operand that dies. A replica that updates its part of a variable does so where the part lies, and gathers
// the others around it. Kernels' scratch space is planned like any buffer. Last pass: the order of ops is final.
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
  int64_t bytes = 0;                     // aligned end
  int64_t variables = 0, optimizer = 0;  // bytes by role, alignment included: they sum to `bytes`
};
StateRegion plan_state(const std::vector<StateVariable>& state, const DeviceMesh& mesh, int64_t device);

// Bytes alive at the instant of the peak, by what they are for. Every buffer counts with its alignment.
struct MemoryUse {
  int64_t variables = 0, optimizer = 0;  // all state of the model
  int64_t gradients = 0;                 // made on the way back, read by an update or kept as an output
  int64_t communication = 0;             // results of collectives
  int64_t activations = 0;               // the rest: inputs, what flows forwards and backwards, kernels' scratch
  int64_t total() const { return variables + gradients + optimizer + activations + communication; }
};

// Bytes [from, from + bytes) of the arena that have to be at `to` when the program has run.
struct StateCopy {
  int64_t from = 0, to = 0, bytes = 0;
};

struct MemoryPlan {
  std::vector<int64_t> value_offset;    // one entry a value, in bytes; see `offset_of`
  std::vector<ValueId> inside;          // one entry a value: the one whose buffer it lies in, at this device's part; kNoValue: none
  std::vector<int64_t> scratch_offset;  // one entry an op
  int64_t arena_bytes = 0;
  MemoryUse peak;        // most live bytes: its total is the lower bound of arena_bytes
  int32_t peak_op = -1;  // where; -1: before the first op, the number of ops: after the last

  // New state that could not be written in place: the old value is still read later, or one value replaces two variables. The runtime
  // makes these copies in this order after the last op (memcpy; ranges do not overlap). Empty for a scheduled training step.
  std::vector<StateCopy> copies;
};

// `scratch`: bytes of kernel scratch of each op. The graph is partitioned; local sizes are those of `device`.
// Data and scalar inputs are live from before the first op to their last reader, results and gradients to the end.
// Errors: a state variable that `state` does not hold; an old value that is asked for as a result of the program that replaces it;
// variables that exchange their values.
MemoryPlan plan_memory(const Graph& graph, int64_t device, const std::vector<int64_t>& scratch, const StateRegion& state);

// Where a value lies on a device of the plan's class. Parts inside another value lie elsewhere on each device.
int64_t offset_of(const MemoryPlan& plan, const Graph& graph, ValueId value, int64_t device);

// Devices whose local shapes (of all values and all state) agree share a class: programs are compiled once a class. Entry d is the class
// of device d; classes are numbered in order of first appearance.
std::vector<int> device_classes(const Graph& graph, const std::vector<StateVariable>& state);

}  // namespace espalier

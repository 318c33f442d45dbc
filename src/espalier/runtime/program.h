#pragma once
// A device's straight list of steps: kernel calls and collectives with arena offsets. Devices of one class (equal local shapes)
// whose offsets agree share a Program; their kernels may differ, since some depend on where a part begins. Views and ops without a single
// result element cost no step.
//
// Peers read a collective's buffers directly, so a step that overwrites one has to wait until they are done. Which step that is follows
// from the offsets, once, here: `drains`. A device thus never waits at the end of a collective, but at the first step that needs its
// memory.
#include <cstdint>
#include <vector>

#include "espalier/comm/communicator.h"
#include "espalier/passes/pipeline.h"

namespace espalier {

enum class StepKind : uint8_t {
  kKernel,
  kCollective,
  kCopy,  // an output to the place of the state it replaces, where the update could not be made in place
};

struct Step {
  StepKind kind = StepKind::kKernel;
  int32_t op = -1;          // in the graph; -1 for kCopy
  int32_t collective = -1;  // in the order of the program
  int32_t buffers = 0;      // first of its operands' offsets in Program::offsets; its results' follow
  int32_t operands = 0, results = 0;
  int32_t first_drain = 0, drains = 0;  // in Program::drains
  int64_t scratch = 0;                  // offset
  int64_t bytes = 0;                    // of a kCopy
};

struct Program {
  std::vector<Step> steps;
  std::vector<int64_t> offsets;
  std::vector<int32_t> drains;  // collectives that have to be drained
  int max_buffers = 0;          // of any step
  bool writes_state = false;
};

// The collectives of a partitioned graph, in order.
std::vector<CollectiveCall> collective_calls(const Graph& graph);

// The steps of `device`, and of those that share its class and offsets. `scratch`: bytes of each op's kernel.
Program make_program(const Compiled& compiled, int64_t device, const std::vector<int64_t>& scratch);

}  // namespace espalier

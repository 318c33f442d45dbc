#pragma once
// From a traced step to a program for every device. pipeline.cpp is the contents page: one line a pass.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"
#include "espalier/passes/complete_layouts.h"
#include "espalier/passes/memory.h"

namespace espalier {

struct CompileOptions {
  std::set<std::string> skip;  // passes left out by name, to bisect; see pass_names()
  int threads = 1;             // cores inside one kernel
};

// A collective of the program as reports show it.
struct Collective {
  std::string kind;               // all_reduce, reduce_scatter, all_gather, all_to_all
  std::vector<std::string> axes;  // mesh axes it runs over
  std::string op;                 // sum, max, logsumexp; "" for pure movement
  Phase phase = Phase::kForward;
  int64_t bytes = 0;              // the most that one device receives from its peers
  std::string reason;
  std::string scope;
};

struct Compiled {
  Graph graph;                     // partitioned, fused, scheduled
  Graph global;                    // simplified, before partitioning: what `explain` talks about
  Pins pins;                       // of `global`
  LayoutPlan layouts;              // of `global`
  std::vector<int> device_class;   // one entry a device
  std::vector<MemoryPlan> memory;  // one entry a class
  std::vector<StateRegion> state;  // one entry a class
  std::vector<Collective> collectives;
  std::vector<int64_t> communication_bytes;  // received by each device in one run
  int threads = 1;
};

// The optional passes, in order, for --skip-pass.
std::vector<std::string> pass_names();

// `pins` fits graph.inputs and graph.outputs. `state` is all state of the model, also what this program does not touch.
Compiled compile(const Graph& graph, std::shared_ptr<const DeviceMesh> mesh, const Pins& pins, const std::vector<StateVariable>& state,
                 const CompileOptions& options);

}  // namespace espalier

#pragma once
// Completing layouts: inputs and outputs are pinned (by the user's map, by the batch axis), everything between is chosen by least
// communication. For each op the candidates are its legal splits over mesh axes that already cut one of its operands (nothing is cut out
// of thin air); a first sweep decides forwards, further sweeps reconsider each op with its consumers known, until nothing gets cheaper.
// It knows factor rules only, no op by name.
#include <functional>
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier {

// What the user fixed: shardings of inputs (one entry an input) and of outputs (one entry an output). All are without pending axes.
struct Pins {
  std::vector<Sharding> inputs, outputs;
};

// One split that was possible for an op and its price, for `explain`.
struct Alternative {
  Split split;
  std::vector<Sharding> operands, results;
  int64_t bytes = 0;   // received by the busiest device to bring the operands into this form and to resolve the results for their consumers
  double flops = 0;    // of the largest part
};

// The decision for each op: how its factors are cut.
struct LayoutPlan {
  std::vector<Split> splits;           // one entry an op
  int64_t bytes = 0;                   // total price as the search saw it
};

LayoutPlan complete_layouts(const Graph& graph, const DeviceMesh& mesh, const Pins& pins);
// All candidates of one op under a plan, cheapest first.
std::vector<Alternative> alternatives(const Graph& graph, const DeviceMesh& mesh, const Pins& pins, const LayoutPlan& plan, int op);

}  // namespace espalier

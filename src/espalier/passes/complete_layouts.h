#pragma once
// Completing layouts: inputs and outputs are pinned (by the user's map, by the batch axis), everything between is chosen by least
// communication. For each op the candidates are its legal splits over mesh axes that already cut one of its operands, or that a consumer
// wants to see cut (nothing is cut out of thin air). A first sweep decides forwards; further sweeps reconsider each op with its consumers
// known, until nothing gets cheaper. It knows factor rules only, no op by name.
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier {

// What the user fixed: shardings of inputs (one entry an input) and of outputs (one entry an output). None has pending axes.
struct Pins {
  std::vector<Sharding> inputs, outputs;
};

// How one op is cut: which axes cut each factor, and which pending sums flow through it.
struct OpLayout {
  Split split;
  AxisSet pass = 0;
  int carrier = -1;  // the operand that brings the pending sums; -1: all of them (Linearity::kJoint)
  friend bool operator==(const OpLayout&, const OpLayout&) = default;
};
Sharding needed_sharding(const FactorRule& rule, const OpLayout& layout, int operand);
Sharding produced_sharding(const FactorRule& rule, const OpLayout& layout, int result);

struct LayoutPlan {
  std::vector<OpLayout> ops;  // one entry an op
};
LayoutPlan complete_layouts(const Graph& graph, const DeviceMesh& mesh, const Pins& pins);

// One way to cut an op, and its price with everything else as planned.
struct Alternative {
  OpLayout layout;
  std::vector<Sharding> operands, results;
  int64_t bytes = 0;         // received by the busiest device: operands brought into this form, results into those their consumers need
  double flops = 0;          // of the largest part
  int64_t result_bytes = 0;  // memory of the results' largest shards
  double price = 0;          // what decides, in bytes: those received, kLatencyBytes for each move that waits for peers, one for each flop
};
// All candidates of one op under a plan, the chosen one first, then by price.
std::vector<Alternative> alternatives(const Graph& graph, const DeviceMesh& mesh, const Pins& pins, const LayoutPlan& plan, int op);

// Floating-point operations of the whole graph on the device with the largest parts.
double largest_flops(const Graph& graph, const DeviceMesh& mesh, const Pins& pins, const LayoutPlan& plan);

}  // namespace espalier

#pragma once
// Writing a graph anew, op by op: what every pass does that drops, joins or reorders ops. Types, shardings and names are kept as they are,
// never inferred again: after partitioning they are decisions.
#include "espalier/ir/graph.h"

namespace espalier {

class Rewrite {
 public:
  // Takes over name, mesh and inputs. `source` outlives the rewrite.
  explicit Rewrite(const Graph& source);

  // The new id of a value of the source; kNoValue before its op is copied.
  ValueId of(ValueId source) const { return map_[static_cast<size_t>(source)]; }
  // From here on, uses of `source` become uses of `id`, a value of the new graph.
  void replace(ValueId source, ValueId id) { map_[static_cast<size_t>(source)] = id; }

  // Appends an op of the source.
  void copy(const Op& op);
  // Appends `op`, whose operands are ids of the new graph; its results become copies of the source's values `results`.
  void add(Op op, const std::vector<ValueId>& results);

  const Graph& graph() const { return result_; }
  // Adds the outputs and hands the graph over.
  Graph finish();

 private:
  const Graph& source_;
  Graph result_;
  std::vector<ValueId> map_;
};

// The ops that read each value, in order; an op that reads it twice stands there once.
std::vector<std::vector<int32_t>> readers(const Graph& graph);

// The value whose bytes a value has: views hand them on.
ValueId origin(const Graph& graph, ValueId id);

// For each op, the ops that have to stand before it although it reads none of their results: the readers of a state variable of which
// this op makes the new value. Left out where a reader needs what comes after the op: no order can then save the old value.
std::vector<std::vector<int32_t>> readers_of_replaced_state(const Graph& graph);

}  // namespace espalier

#pragma once
// Programs for the runtime without the compiler: meshes, collectives, and memory planned as tightly as lifetimes allow, so that a buffer is
// overwritten the moment its program is done with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "espalier/ir/local.h"
#include "espalier/runtime/executor.h"
#include "espalier/runtime/program.h"

namespace espalier {

using Mesh = std::shared_ptr<const DeviceMesh>;

inline Mesh make_mesh(std::vector<int64_t> shape) {
  std::vector<std::string> names;
  for (size_t a = 0; a < shape.size(); ++a) names.push_back(fmt::format("a{}", a));
  return std::make_shared<DeviceMesh>(std::move(shape), names);
}

inline FactorRule same_shape(const OpSignature& signature) { return elementwise_rule(signature.shapes(), 1, signature.where); }

inline const OpDef kAlias{.name = "alias", .doc = "", .rule = same_shape, .view = true};
inline const OpDef kMove{.name = "move", .doc = "", .rule = same_shape, .collective = true};

// Lowest offset at which `bytes` meet none of the live buffers.
inline int64_t place(int64_t bytes, const std::vector<Range>& live, int64_t floor) {
  int64_t offset = floor;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Range& range : live)
      if (range.size > 0 && offset < range.offset + range.size && range.offset < offset + bytes)
        offset = (range.offset + range.size + 63) / 64 * 64, moved = true;
  }
  return offset;
}

struct Lifetimes {
  std::vector<ValueId> root;  // whose buffer a value lies in: a view's operand, an update's state, an all-reduce's operand
  std::vector<int> last;      // op of the last use of a root
};

inline bool is_state(Role role) { return role == Role::kVariable || role == Role::kOptimizer; }

inline Lifetimes lifetimes(const Graph& graph) {
  Lifetimes lives;
  auto end = static_cast<int>(graph.ops.size());
  for (ValueId v = 0; v < static_cast<ValueId>(graph.values.size()); ++v) lives.root.push_back(v);
  std::vector<int> last(graph.values.size(), -1);
  for (int i = 0; i < end; ++i)
    for (ValueId v : graph.ops[static_cast<size_t>(i)].operands) last[static_cast<size_t>(v)] = i;
  for (const Output& output : graph.outputs) last[static_cast<size_t>(output.value)] = end;
  lives.last = last;
  for (int i = 0; i < end; ++i) {
    const Op& op = graph.ops[static_cast<size_t>(i)];
    const Value &from = graph.value(op.operands[0]), &to = graph.value(op.results[0]);
    bool in_place = op.def == &kMove && from.sharding.pending != 0 && to.sharding.pending == 0 && from.sharding.dims == to.sharding.dims &&
                    from.op >= 0 && last[static_cast<size_t>(op.operands[0])] == i &&
                    graph.ops[static_cast<size_t>(from.op)].def != &kAlias;
    if (!op.def->view && !in_place) continue;
    ValueId root = lives.root[static_cast<size_t>(op.operands[0])];
    lives.root[static_cast<size_t>(op.results[0])] = root;
    lives.last[static_cast<size_t>(root)] = std::max(lives.last[static_cast<size_t>(root)], last[static_cast<size_t>(op.results[0])]);
  }
  return lives;
}

inline MemoryPlan plan_tightly(const Graph& graph, int64_t device, const StateRegion& state) {
  MemoryPlan plan;
  plan.value_offset.assign(graph.values.size(), -1);
  plan.inside.assign(graph.values.size(), kNoValue);
  plan.scratch_offset.assign(graph.ops.size(), -1);
  Lifetimes lives = lifetimes(graph);
  std::vector<std::pair<ValueId, Range>> live;
  plan.arena_bytes = state.bytes;
  auto allocate = [&](int64_t bytes) {
    std::vector<Range> ranges;
    for (auto& entry : live) ranges.push_back(entry.second);
    int64_t offset = place(bytes, ranges, state.bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    return offset;
  };
  auto define = [&](ValueId v) {
    auto& offset = plan.value_offset[static_cast<size_t>(v)];
    ValueId root = lives.root[static_cast<size_t>(v)];
    if (root != v) {
      offset = plan.value_offset[static_cast<size_t>(root)];
      return;
    }
    int64_t bytes = local_bytes(graph, v, device);
    offset = allocate(bytes);
    live.emplace_back(v, Range{offset, bytes});
  };
  for (const Input& input : graph.inputs) {
    if (!is_state(input.role)) define(input.value);
    if (is_state(input.role)) plan.value_offset[static_cast<size_t>(input.value)] = state.offset.at(input.name);
  }
  for (int i = 0; i < static_cast<int>(graph.ops.size()); ++i) {
    const Op& op = graph.ops[static_cast<size_t>(i)];
    for (ValueId v : op.results) define(v);
    if (op.def->cpu != nullptr)
      plan.scratch_offset[static_cast<size_t>(i)] = allocate(op.def->cpu(local_op(graph, op, device, 1)).scratch_bytes);
    std::erase_if(live, [&](auto& entry) { return lives.last[static_cast<size_t>(entry.first)] <= i; });
  }
  // State that takes the value of other state first, since that may be overwritten in turn.
  for (bool from_state : {true, false})
    for (const Output& output : graph.outputs) {
      if (!is_state(output.role) || (graph.value(output.value).op < 0) != from_state) continue;
      StateCopy copy{plan.value_offset[static_cast<size_t>(output.value)], state.offset.at(output.name),
                     local_bytes(graph, output.value, device)};
      if (copy.bytes > 0 && copy.from != copy.to) plan.copies.push_back(copy);
    }
  return plan;
}

inline std::shared_ptr<Compiled> bind(Graph graph) {
  auto compiled = std::make_shared<Compiled>();
  for (int64_t d = 0; d < graph.mesh->size(); ++d) {
    StateRegion state;
    for (const Input& input : graph.inputs) {
      if (!is_state(input.role)) continue;
      state.offset[input.name] = state.bytes;
      state.bytes += (local_bytes(graph, input.value, d) + 63) / 64 * 64;
    }
    compiled->device_class.push_back(static_cast<int>(d));
    compiled->memory.push_back(plan_tightly(graph, d, state));
    compiled->state.push_back(state);
  }
  compiled->graph = std::move(graph);
  return compiled;
}

}  // namespace espalier

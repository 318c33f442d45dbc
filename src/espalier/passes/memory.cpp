#include "espalier/passes/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "espalier/base/runs.h"
#include "espalier/ir/local.h"
#include "espalier/passes/place_buffers.h"
#include "espalier/passes/rewrite.h"

namespace espalier {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }
bool is_state(Role role) { return role == Role::kVariable || role == Role::kOptimizer; }

// Whether result `r` may be written over operand `i`: each element is read before it is written, and nothing else needs the operand.
bool may_overwrite(const Graph& graph, const Op& op, size_t i, size_t r) {
  const Value &operand = graph.value(op.operands[i]), &result = graph.value(op.results[r]);
  if (!(operand.type.shape == result.type.shape) || operand.sharding.dims != result.sharding.dims) return false;
  if (op.def->elementwise() || op.def->elementwise_body) return true;
  if (r < static_cast<size_t>(op.def->updates)) return i == r;
  return r == 0 && std::find(op.def->in_place.begin(), op.def->in_place.end(), static_cast<int>(i)) != op.def->in_place.end();
}

// Bytes from the beginning of `whole`'s buffer on a device to that of `part`, whose elements it has too; -1 when they do not lie together
// there, or not as buffers are aligned.
int64_t part_shift(const Graph& graph, ValueId whole, ValueId part, int64_t device) {
  const Value &outer = graph.value(whole), &inner = graph.value(part);
  const Box has = shard_box(outer.sharding, outer.type.shape, *graph.mesh, device),
            wants = shard_box(inner.sharding, inner.type.shape, *graph.mesh, device);
  if (!(intersect(has, wants) == wants)) return -1;
  Dims offset = wants.offset;
  for (int d = 0; d < offset.rank(); ++d) offset[d] -= has.offset[d];
  int64_t runs = 0, first = 0;
  for_each_run(has.shape, offset, wants.shape, [&](int64_t at_whole, int64_t, int64_t) { first = runs++ == 0 ? at_whole : first; });
  const int64_t bytes = first * size_of(outer.type.dtype);
  return runs <= 1 && bytes % kBufferAlignment == 0 ? bytes : -1;
}

// One run of plan_memory. Instants: -1 before the first op (inputs are filled), o while op o runs, the number of ops after the last.
class Planner {
 public:
  Planner(const Graph& graph, int64_t device, const std::vector<int64_t>& scratch, const StateRegion& state)
      : graph_(graph), device_(device), scratch_(scratch), state_(state), end_(static_cast<int32_t>(graph.ops.size())) {}

  MemoryPlan run() {
    find_origins();
    find_last_uses();
    fix_state();
    place_parts();
    assign_buffers();
    add_scratch();
    plan_.arena_bytes = place_buffers(buffers_, state_.bytes);
    for (size_t v = 0; v < graph_.values.size(); ++v) plan_.value_offset.push_back(offset(origin_[v]));
    for (size_t o = 0; o < graph_.ops.size(); ++o) plan_.scratch_offset.push_back(buffers_[scratch_buffer_[o]].offset);
    order_copies();
    measure_peak();
    return std::move(plan_);
  }

 private:
  static size_t at(ValueId id) { return static_cast<size_t>(id); }
  ValueId origin(ValueId id) const { return origin_[at(id)]; }
  bool fixed(ValueId origin) const { return fixed_[at(origin)] >= 0; }
  int64_t offset(ValueId origin) const { return fixed(origin) ? fixed_[at(origin)] : buffers_[at(buffer_[at(origin)])].offset; }

  void find_origins() {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) origin_.push_back(espalier::origin(graph_, id));
  }

  // Readers of views read the origin. A view itself reads nothing.
  void find_last_uses() {
    last_use_.assign(graph_.values.size(), -2);
    for (int32_t o = 0; o < end_; ++o) {
      const Op& op = graph_.ops[static_cast<size_t>(o)];
      for (ValueId id : op.results)
        if (!op.def->view) last_use_[at(id)] = o;  // written, even if nobody reads it
      if (op.def->view) continue;
      for (ValueId id : op.operands) last_use_[at(origin(id))] = o;
    }
    for (const Input& input : graph_.inputs) last_use_[at(input.value)] = std::max(last_use_[at(input.value)], -1);
    for (const Output& output : graph_.outputs)
      if (!is_state(output.role)) last_use_[at(origin(output.value))] = end_;
  }

  int64_t state_offset(const std::string& name) const {
    auto found = state_.offset.find(name);
    if (found == state_.offset.end()) usage_error(fmt::format("state variable '{}' has no place in the arena", name), "memory plan");
    return found->second;
  }

  // State lies where all programs have it; its new values are written there when nobody needs the old ones any more.
  void fix_state() {
    fixed_.assign(graph_.values.size(), -1);
    for (const Input& input : graph_.inputs)
      if (is_state(input.role)) {
        fixed_[at(input.value)] = state_offset(input.name);
        state_input_.emplace(input.name, input.value);
      }
    // Inputs that become the new value of another variable are read at the very end, when that copy is made.
    for (const Output& output : graph_.outputs)
      if (is_state(output.role) && graph_.value(origin(output.value)).op < 0 && origin(output.value) != old_value(output))
        last_use_[at(origin(output.value))] = end_;
    for (const Output& output : graph_.outputs)
      if (is_state(output.role)) replace_state(output);
  }

  ValueId old_value(const Output& output) const {
    auto found = state_input_.find(output.name);
    return found == state_input_.end() ? kNoValue : found->second;
  }

  void replace_state(const Output& output) {
    ValueId made = origin(output.value), old = old_value(output);
    if (made == old) return;
    if (old != kNoValue)
      for (const Output& other : graph_.outputs)
        if (!is_state(other.role) && origin(other.value) == old)
          usage_error(fmt::format("output '{}' is the old value of variable '{}', which the program replaces", other.name, output.name),
                      "memory plan", "ask for the new value, or for a computed copy");
    if (!fixed(made) && may_replace(made, old)) {
      fixed_[at(made)] = state_offset(output.name);
      return;
    }
    last_use_[at(made)] = end_;
    copies_.push_back({made, state_offset(output.name)});
  }

  // Nobody reads the old value after the op that makes the new one, nor that op itself in another order than it writes.
  bool may_replace(ValueId made, ValueId old) const {
    const Value& value = graph_.value(made);
    if (value.op < 0) return false;
    if (old == kNoValue) return true;
    if (local_bytes(graph_, made, device_) != local_bytes(graph_, old, device_) || last_use_[at(old)] > value.op) return false;
    return last_use_[at(old)] < value.op ||
           overwrites_all(graph_.ops[static_cast<size_t>(value.op)], old, static_cast<size_t>(value.result));
  }

  // Every operand that is `old`, or a view of it, may be written over by result r.
  bool overwrites_all(const Op& op, ValueId old, size_t r) const {
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (origin(op.operands[i]) == old && !may_overwrite(graph_, op, i, r)) return false;
    return true;
  }

  // A variable of which this device has a shard updated, and then all shards gathered: the shard is updated where it lies in the variable.
  void place_parts() {
    plan_.inside.assign(graph_.values.size(), kNoValue);
    const auto reading = readers(graph_);
    auto read_once = [&](ValueId id) {
      return reading[at(id)].size() == 1 &&
             std::none_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const Output& output) { return origin(output.value) == id; });
    };
    for (const Output& output : graph_.outputs) {
      const ValueId made = origin(output.value), old = is_state(output.role) ? old_value(output) : kNoValue;
      if (old == kNoValue || made == old || fixed_[at(made)] != fixed_[at(old)] || graph_.value(made).op < 0) continue;
      const Op& gather = graph_.ops[static_cast<size_t>(graph_.value(made).op)];
      if (!gather.def->collective) continue;
      const ValueId updated = gather.operands[0];
      if (graph_.value(updated).op < 0 || !read_once(updated)) continue;
      const int32_t update = graph_.value(updated).op;
      const Op& op = graph_.ops[static_cast<size_t>(update)];
      if (op.operands.empty() || op.results[0] != updated || op.def->view || op.def->collective) continue;
      const ValueId shard = op.operands[0];
      if (!may_overwrite(graph_, op, 0, 0)) continue;
      if (!keeps_part(shard, old) || !read_once(shard) || last_use_[at(old)] >= update || !lies_inside(old, shard)) continue;
      for (ValueId part : {shard, updated}) {
        plan_.inside[at(part)] = old;
        fixed_[at(part)] = fixed_[at(old)] + part_shift(graph_, old, part, device_);
      }
    }
  }

  bool keeps_part(ValueId shard, ValueId of) const {
    const Value& value = graph_.value(shard);
    if (value.op < 0) return false;
    const Op& op = graph_.ops[static_cast<size_t>(value.op)];
    return op.def->keeps_part && op.operands[0] == of;
  }

  // On every device: who moves what does not depend on the class.
  bool lies_inside(ValueId whole, ValueId part) const {
    for (int64_t device = 0; device < graph_.mesh->size(); ++device)
      if (part_shift(graph_, whole, part, device) < 0) return false;
    return true;
  }

  void assign_buffers() {
    buffer_.assign(graph_.values.size(), -1);
    for (const Input& input : graph_.inputs)
      if (!fixed(input.value)) add_buffer(input.value, -1);
    for (int32_t o = 0; o < end_; ++o) {
      const Op& op = graph_.ops[static_cast<size_t>(o)];
      if (op.def->view) continue;
      for (size_t r = 0; r < op.results.size(); ++r)
        if (ValueId id = op.results[r]; !fixed(id) && !take_over(op, o, r)) add_buffer(id, o);
    }
  }

  void add_buffer(ValueId id, int32_t birth) {
    buffer_[at(id)] = static_cast<int>(buffers_.size());
    buffers_.push_back({.bytes = aligned(local_bytes(graph_, id, device_)), .birth = birth, .death = last_use_[at(id)]});
    members_.push_back({id});
  }

  // Result r goes into the buffer of an operand that dies here.
  bool take_over(const Op& op, int32_t o, size_t r) {
    ValueId result = op.results[r];
    for (size_t i = 0; i < op.operands.size(); ++i) {
      ValueId operand = origin(op.operands[i]);
      if (fixed(operand) || !may_overwrite(graph_, op, i, r) || !overwrites_all(op, operand, r)) continue;
      int buffer = buffer_[at(operand)];
      // The death is past this op when the operand lives on, or when another result has just moved in and lives on.
      if (buffers_[at(buffer)].death != o || members_[at(buffer)].back() != operand) continue;
      buffer_[at(result)] = buffer;
      buffers_[at(buffer)].death = last_use_[at(result)];
      members_[at(buffer)].push_back(result);
      return true;
    }
    return false;
  }

  void add_scratch() {
    for (int32_t o = 0; o < end_; ++o) {
      scratch_buffer_.push_back(buffers_.size());
      buffers_.push_back({.bytes = aligned(scratch_[static_cast<size_t>(o)]), .birth = o, .death = o});
      members_.emplace_back();
    }
  }

  // A copy out of a variable's old place goes before the copy into it.
  void order_copies() {
    while (!copies_.empty()) {
      auto free = std::find_if(copies_.begin(), copies_.end(), [&](const auto& copy) {
        return std::none_of(copies_.begin(), copies_.end(), [&](const auto& other) {
          return &other != &copy && offset(other.first) == copy.second && bytes(other.first) > 0;
        });
      });
      if (free == copies_.end())
        usage_error("variables exchange their values", "memory plan", "compute one of the new values from the old");
      if (bytes(free->first) > 0) plan_.copies.push_back({offset(free->first), free->second, bytes(free->first)});
      copies_.erase(free);
    }
  }
  int64_t bytes(ValueId id) const { return local_bytes(graph_, id, device_); }

  void measure_peak() {
    const LiveBytes most = most_live(buffers_);
    plan_.peak_op = buffers_.empty() ? -1 : most.instant;
    plan_.peak = {.variables = state_.variables, .optimizer = state_.optimizer};
    const std::vector<bool> gradient = find_gradients();
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (most.instant < buffers_[b].birth || most.instant > buffers_[b].death) continue;
      ValueId held = kNoValue;  // who is in the buffer then
      for (ValueId id : members_[b])
        if (graph_.value(id).op <= most.instant) held = id;
      category(held, gradient) += buffers_[b].bytes;
    }
  }

  int64_t& category(ValueId id, const std::vector<bool>& gradient) {
    if (id == kNoValue) return plan_.peak.activations;
    if (int32_t op = graph_.value(id).op; op >= 0 && graph_.ops[static_cast<size_t>(op)].def->collective) return plan_.peak.communication;
    return gradient[at(id)] ? plan_.peak.gradients : plan_.peak.activations;
  }

  // Made on the way back and, past collectives and views, read by an update or kept as a gradient.
  std::vector<bool> find_gradients() const {
    std::vector<bool> gradient(graph_.values.size(), false);
    auto mark = [&](ValueId id) {
      int32_t op = graph_.value(id).op;
      if (op >= 0 && graph_.ops[static_cast<size_t>(op)].phase == Phase::kBackward) gradient[at(id)] = true;
    };
    for (const Output& output : graph_.outputs)
      if (output.role == Role::kGradient) mark(output.value);
    for (size_t o = graph_.ops.size(); o-- > 0;) {
      const Op& op = graph_.ops[o];
      bool hands_on = (op.def->collective || op.def->view) && gradient[at(op.results[0])];
      if (op.phase == Phase::kUpdate || hands_on)
        for (ValueId id : op.operands) mark(id);
    }
    for (size_t v = 0; v < gradient.size(); ++v)
      if (gradient[v]) gradient[at(origin_[v])] = true;
    return gradient;
  }

  const Graph& graph_;
  const int64_t device_;
  const std::vector<int64_t>& scratch_;
  const StateRegion& state_;
  const int32_t end_;
  std::vector<ValueId> origin_;    // one entry a value; the rest is known for origins only
  std::vector<int32_t> last_use_;  // instant
  std::vector<int64_t> fixed_;     // offset of state, -1 for the rest
  std::vector<int> buffer_;        // number in buffers_, -1 for state
  std::vector<Buffer> buffers_;
  std::vector<std::vector<ValueId>> members_;  // one entry a buffer: who lives in it, in order
  std::vector<size_t> scratch_buffer_;         // one entry an op
  std::unordered_map<std::string, ValueId> state_input_;
  std::vector<std::pair<ValueId, int64_t>> copies_;  // from, to
  MemoryPlan plan_;
};

}  // namespace

StateRegion plan_state(const std::vector<StateVariable>& state, const DeviceMesh& mesh, int64_t device) {
  StateRegion region;
  for (const StateVariable& variable : state) {
    region.offset[variable.name] = region.bytes;
    int64_t bytes = aligned(local_shape(variable.sharding, variable.type.shape, mesh, device).volume() * size_of(variable.type.dtype));
    region.bytes += bytes;
    (variable.role == Role::kOptimizer ? region.optimizer : region.variables) += bytes;
  }
  return region;
}

MemoryPlan plan_memory(const Graph& graph, int64_t device, const std::vector<int64_t>& scratch, const StateRegion& state) {
  ESPALIER_ASSERT(scratch.size() == graph.ops.size());
  return Planner(graph, device, scratch, state).run();
}

int64_t offset_of(const MemoryPlan& plan, const Graph& graph, ValueId value, int64_t device) {
  const auto at = static_cast<size_t>(value);
  const ValueId whole = plan.inside[at];
  if (whole == kNoValue) return plan.value_offset[at];
  return plan.value_offset[static_cast<size_t>(whole)] + part_shift(graph, whole, value, device);
}

std::vector<int> device_classes(const Graph& graph, const std::vector<StateVariable>& state) {
  // All that tells devices apart: for each list of axes that cuts some dim, and each remainder it leaves, who has one element more.
  const DeviceMesh& mesh = *graph.mesh;
  std::vector<std::pair<AxisList, int64_t>> cuts;
  auto add = [&](const Sharding& sharding, const Dims& shape) {
    for (int d = 0; d < shape.rank(); ++d) {
      const AxisList& axes = sharding.dims[static_cast<size_t>(d)];
      if (axes.empty()) continue;
      std::pair<AxisList, int64_t> cut{axes, shape[d] % part_count(axes, mesh)};
      if (cut.second != 0 && std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
    }
  };
  for (const Value& value : graph.values) add(value.sharding, value.type.shape);
  for (const StateVariable& variable : state) add(variable.sharding, variable.type.shape);

  std::vector<int> classes;
  std::unordered_map<std::string, int> numbers;  // one character a cut: '1' for the longer part
  std::string key(cuts.size(), '0');
  for (int64_t device = 0; device < mesh.size(); ++device) {
    for (size_t c = 0; c < cuts.size(); ++c) key[c] = part_index(cuts[c].first, mesh, device) < cuts[c].second ? '1' : '0';
    classes.push_back(numbers.emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  return classes;
}

}  // namespace espalier

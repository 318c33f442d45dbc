#include "espalier/runtime/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/ir/local.h"

namespace espalier {
namespace {

// Bytes [begin, end) of the arena.
struct Span {
  int64_t begin = 0, end = 0;
  bool meets(const Span& other) const { return begin < other.end && other.begin < end; }
};

class ProgramWriter {
 public:
  ProgramWriter(const Compiled& compiled, int64_t device, const std::vector<int64_t>& scratch)
      : graph_(compiled.graph),
        memory_(compiled.memory[static_cast<size_t>(compiled.device_class[static_cast<size_t>(device)])]),
        state_(compiled.state[static_cast<size_t>(compiled.device_class[static_cast<size_t>(device)])]),
        device_(device),
        scratch_(scratch) {}

  Program write() {
    check_state_inputs();
    for (size_t i = 0; i < graph_.ops.size(); ++i) add_op(static_cast<int32_t>(i));
    add_state_copies();
    return std::move(program_);
  }

 private:
  Span span(ValueId value) const {
    const int64_t bytes = local_bytes(graph_, value, device_);
    if (bytes == 0) return {};
    const int64_t offset = offset_of(memory_, graph_, value, device_);
    ESPALIER_ASSERT(offset >= 0 && offset % kBufferAlignment == 0 && offset + bytes <= memory_.arena_bytes);
    return {offset, offset + bytes};
  }

  void check_state_inputs() const {
    for (const Input& input : graph_.inputs)
      if (input.role == Role::kVariable || input.role == Role::kOptimizer)
        ESPALIER_ASSERT(local_bytes(graph_, input.value, device_) == 0 || span(input.value).begin == state_.offset.at(input.name));
  }

  void add_op(int32_t index) {
    const Op& op = graph_.ops[static_cast<size_t>(index)];
    std::vector<Span> writes;
    for (ValueId value : op.results) writes.push_back(span(value));
    if (op.def->collective) {
      const Value &from = graph_.value(op.operands[0]), &to = graph_.value(op.results[0]);
      // Peers copy their parts of an all-reduce out of its results; it may be done in place. A part that is kept or gathered may lie in
      // its place already.
      const bool all_reduce = from.sharding.pending != to.sharding.pending && from.sharding.dims == to.sharding.dims;
      const Span operand = span(op.operands[0]);
      const bool in_place = memory_.inside[static_cast<size_t>(op.operands[0])] != kNoValue ||
                            memory_.inside[static_cast<size_t>(op.results[0])] == op.operands[0];
      ESPALIER_ASSERT(!operand.meets(writes[0]) || in_place || (all_reduce && operand.begin == writes[0].begin));
      add_step({.kind = StepKind::kCollective, .op = index, .collective = collectives_++}, {operand}, writes, writes);
      remember(operand);
      if (all_reduce) remember(writes[0]);
      return;
    }
    const bool empty = std::all_of(writes.begin(), writes.end(), [](const Span& s) { return s.begin == s.end; });
    if (empty || (op.def->view && span(op.operands[0]).begin == writes[0].begin)) return;
    std::vector<Span> reads, touched = writes;
    for (ValueId value : op.operands) reads.push_back(span(value));
    const int64_t scratch = memory_.scratch_offset[static_cast<size_t>(index)], bytes = scratch_[static_cast<size_t>(index)];
    if (bytes > 0) {
      ESPALIER_ASSERT(scratch >= 0 && scratch + bytes <= memory_.arena_bytes);
      touched.push_back({scratch, scratch + bytes});
    }
    add_step({.kind = StepKind::kKernel, .op = index, .scratch = bytes > 0 ? scratch : 0}, reads, writes, touched);
  }

  // A buffer of the last collective that peers may still be reading.
  struct Shared {
    Span span;
    int32_t collective = 0;
  };
  void remember(Span span) {
    if (span.begin < span.end) shared_.push_back({span, collectives_ - 1});
  }

  void add_step(Step step, const std::vector<Span>& reads, const std::vector<Span>& results, const std::vector<Span>& touched) {
    step.buffers = static_cast<int32_t>(program_.offsets.size());
    step.operands = static_cast<int32_t>(reads.size());
    step.results = static_cast<int32_t>(results.size());
    for (const Span& span : reads) program_.offsets.push_back(span.begin);
    for (const Span& span : results) program_.offsets.push_back(span.begin);
    program_.max_buffers = std::max(program_.max_buffers, step.operands + step.results);
    step.first_drain = static_cast<int32_t>(program_.drains.size());
    for (const Shared& shared : shared_)
      if (std::any_of(touched.begin(), touched.end(), [&](const Span& span) { return span.meets(shared.span); }))
        program_.drains.push_back(shared.collective);
    auto first = program_.drains.begin() + step.first_drain;
    std::sort(first, program_.drains.end());
    program_.drains.erase(std::unique(first, program_.drains.end()), program_.drains.end());
    step.drains = static_cast<int32_t>(program_.drains.size()) - step.first_drain;
    std::erase_if(shared_, [&](const Shared& shared) {
      auto begin = program_.drains.begin() + step.first_drain;
      return std::find(begin, program_.drains.end(), shared.collective) != program_.drains.end();
    });
    program_.steps.push_back(step);
  }

  void add_state_copies() {
    for (const StateCopy& copy : memory_.copies) {
      const Span from{copy.from, copy.from + copy.bytes}, to{copy.to, copy.to + copy.bytes};
      add_step({.kind = StepKind::kCopy, .bytes = copy.bytes}, {from}, {to}, {to});
    }
    for (const Output& output : graph_.outputs)
      program_.writes_state = program_.writes_state || output.role == Role::kVariable || output.role == Role::kOptimizer;
  }

  const Graph& graph_;
  const MemoryPlan& memory_;
  const StateRegion& state_;
  int64_t device_;
  const std::vector<int64_t>& scratch_;
  Program program_;
  std::vector<Shared> shared_;
  int32_t collectives_ = 0;
};

}  // namespace

std::vector<CollectiveCall> collective_calls(const Graph& graph) {
  std::vector<CollectiveCall> calls;
  for (const Op& op : graph.ops) {
    if (!op.def->collective) continue;
    const Value &from = graph.value(op.operands[0]), &to = graph.value(op.results[0]);
    std::string name = fmt::format("{} of '{}'", op.def->name, op.scope.empty() ? to_string(from.type) : op.scope);
    if (!op.reason.empty()) name += fmt::format(" ({})", op.reason);
    calls.push_back({std::move(name), from.type, from.sharding, to.sharding});
  }
  return calls;
}

Program make_program(const Compiled& compiled, int64_t device, const std::vector<int64_t>& scratch) {
  return ProgramWriter(compiled, device, scratch).write();
}

}  // namespace espalier

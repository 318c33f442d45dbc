#include "espalier/passes/partition.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "espalier/passes/reshard.h"

namespace espalier {
namespace {

// "matmul of sequential/dense".
std::string named(const Op& op) { return op.scope.empty() ? op.def->name : fmt::format("{} of {}", op.def->name, op.scope); }

class Partitioner {
 public:
  Partitioner(const Graph& source, std::shared_ptr<const DeviceMesh> mesh, const Pins& pins, const LayoutPlan& plan)
      : source_(source), mesh_(std::move(mesh)), pins_(pins), plan_(plan), local_(source.values.size(), kNoValue) {
    result_.name = source.name;
    result_.mesh = mesh_;
  }

  Graph run() {
    for (size_t i = 0; i < source_.inputs.size(); ++i) {
      const Input& input = source_.inputs[i];
      ValueId id = result_.add_input(input.role, input.name, source_.type(input.value));
      result_.value(id).sharding = pins_.inputs[i];
      local_[static_cast<size_t>(input.value)] = id;
    }
    for (size_t o = 0; o < source_.ops.size(); ++o) place(source_.ops[o], plan_.ops[o]);
    for (size_t i = 0; i < source_.outputs.size(); ++i) {
      const Output& output = source_.outputs[i];
      std::string who = fmt::format("the output {} '{}'", to_string(output.role), output.name);
      result_.add_output(output.role, output.name,
                         reshard(local_[static_cast<size_t>(output.value)], pins_.outputs[i], who, Phase::kUpdate));
    }
    return std::move(result_);
  }

 private:
  void place(const Op& op, const OpLayout& layout) {
    FactorRule rule = rule_of(source_, op);
    std::string who = named(op);
    Op placed = op;
    for (size_t i = 0; i < op.operands.size(); ++i)
      placed.operands[i] =
          reshard(local_[static_cast<size_t>(op.operands[i])], needed_sharding(rule, layout, static_cast<int>(i)), who, op.phase);
    std::vector<ValueId> results = result_.append(std::move(placed)).results;
    for (size_t r = 0; r < results.size(); ++r) {
      result_.value(results[r]).sharding = produced_sharding(rule, layout, static_cast<int>(r));
      local_[static_cast<size_t>(op.results[r])] = results[r];
    }
  }

  // The value in another form; made once for all who ask for it.
  ValueId reshard(ValueId value, const Sharding& to, const std::string& who, Phase phase) {
    auto key = std::pair(value, ShardingHash()(to));
    for (auto [at, end] = made_.equal_range(key); at != end; ++at)
      if (result_.value(at->second).sharding == to) return at->second;
    const Value origin = result_.value(value);
    ValueId current = value;
    for (const Move& move : plan_moves(origin.sharding, to, origin.type, *mesh_)) {
      Op op{.def = find_op(move.op), .operands = {current}, .phase = phase, .scope = scope_of(value)};
      if (move.from.pending != move.to.pending && origin.op >= 0) op.phase = result_.ops[static_cast<size_t>(origin.op)].phase;
      op.reason = reason(move, value, who);
      current = result_.append(std::move(op)).results.front();
      result_.value(current).sharding = move.to;
    }
    if (current != value) made_.emplace(key, current);
    return current;
  }

  std::string scope_of(ValueId value) const {
    const Value& origin = result_.value(value);
    return origin.op >= 0 ? result_.ops[static_cast<size_t>(origin.op)].scope : origin.name;
  }

  // "matmul of sequential/dense leaves a sum over 'data' pending; sgd_update of sequential/dense needs it whole".
  std::string reason(const Move& move, ValueId value, const std::string& who) const {
    const Value& origin = result_.value(value);
    std::string source = origin.op < 0 ? fmt::format("'{}'", origin.name) : named(result_.ops[static_cast<size_t>(origin.op)]);
    if (AxisSet resolved = move.from.pending & ~move.to.pending; resolved != 0)
      return fmt::format("{} leaves a {} over {} pending; {} needs it as {}", source, to_string(move.from.reduction), axis_names(resolved),
                         who, to_string(move.to, *mesh_));
    return fmt::format("{} is cut as {}; {} needs {}", source, to_string(move.from, *mesh_), who, to_string(move.to, *mesh_));
  }

  std::string axis_names(AxisSet axes) const {
    std::string names;
    for (int a = 0; a < mesh_->axis_count(); ++a)
      if (axes >> a & 1) names += (names.empty() ? "'" : ", '") + mesh_->axis_names()[static_cast<size_t>(a)] + "'";
    return names;
  }

  const Graph& source_;
  std::shared_ptr<const DeviceMesh> mesh_;
  const Pins& pins_;
  const LayoutPlan& plan_;
  Graph result_;
  std::vector<ValueId> local_;                               // the source's values in the result
  std::multimap<std::pair<ValueId, size_t>, ValueId> made_;  // (value, hash of the form) -> the value in that form
};

}  // namespace

Graph partition(const Graph& graph, const std::shared_ptr<const DeviceMesh>& mesh, const Pins& pins, const LayoutPlan& plan) {
  return Partitioner(graph, mesh, pins, plan).run();
}

}  // namespace espalier

#include "espalier/passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/base/nearest.h"
#include "espalier/ir/local.h"
#include "espalier/ops/make_kernel.h"
#include "espalier/passes/absorb.h"
#include "espalier/passes/fuse.h"
#include "espalier/passes/partition.h"
#include "espalier/passes/reshard.h"
#include "espalier/passes/schedule.h"
#include "espalier/passes/simplify.h"

namespace espalier {
namespace {

void check_pass_names(const std::set<std::string>& names) {
  std::vector<std::string> known = pass_names();
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      usage_error(fmt::format("there is no optional pass '{}'", name), "--skip-pass", suggest(name, known));
}

// Kernels are prepared once a class to learn their scratch space; the executor prepares its own, for each device's offsets.
std::vector<int64_t> scratch_bytes(const Graph& graph, int64_t device, int threads) {
  std::vector<int64_t> bytes;
  for (const Op& op : graph.ops) {
    bool computes = !op.def->collective && !op.def->view;
    bytes.push_back(computes ? ops::make_kernel(*op.def, local_op(graph, op, device, threads)).scratch_bytes : 0);
  }
  return bytes;
}

void plan_all_memory(Compiled& compiled, const std::vector<StateVariable>& state) {
  compiled.device_class = device_classes(compiled.graph, state);
  for (size_t device = 0; device < compiled.device_class.size(); ++device) {
    if (compiled.device_class[device] < static_cast<int>(compiled.memory.size())) continue;
    auto d = static_cast<int64_t>(device);
    compiled.state.push_back(plan_state(state, *compiled.graph.mesh, d));
    compiled.memory.push_back(plan_memory(compiled.graph, d, scratch_bytes(compiled.graph, d, compiled.threads), compiled.state.back()));
  }
}

// What the program communicates, from its own ops: nothing is estimated.
void list_collectives(Compiled& compiled) {
  const Graph& graph = compiled.graph;
  const DeviceMesh& mesh = *graph.mesh;
  compiled.communication_bytes.assign(static_cast<size_t>(mesh.size()), 0);
  for (const Op& op : graph.ops) {
    if (!op.def->collective) continue;
    const Value &from = graph.value(op.operands[0]), &to = graph.value(op.results[0]);
    Move move{op.def->name, from.sharding, to.sharding};
    Collective collective{
        .kind = op.def->name, .axes = {}, .op = "", .phase = op.phase, .bytes = 0, .reason = op.reason, .scope = op.scope};
    for (int64_t device = 0; device < mesh.size(); ++device) {
      int64_t bytes = received_bytes(move, to.type, mesh, device);
      compiled.communication_bytes[static_cast<size_t>(device)] += bytes;
      collective.bytes = std::max(collective.bytes, bytes);
    }
    if (collective.bytes == 0) continue;  // a local slice, or parts that are all empty
    for (int a = 0; a < mesh.axis_count(); ++a)
      if (move_axes(move) >> a & 1) collective.axes.push_back(mesh.axis_names()[static_cast<size_t>(a)]);
    if (from.sharding.pending != to.sharding.pending) collective.op = to_string(from.sharding.reduction);
    compiled.collectives.push_back(std::move(collective));
  }
}

}  // namespace

std::vector<std::string> pass_names() { return {"simplify", "share_collectives", "absorb", "fuse", "schedule"}; }

Compiled compile(const Graph& graph, std::shared_ptr<const DeviceMesh> mesh, const Pins& pins, const std::vector<StateVariable>& state,
                 const CompileOptions& options) {
  check_pass_names(options.skip);
  auto enabled = [&](const char* pass) { return options.skip.count(pass) == 0; };
  Compiled compiled;
  compiled.threads = options.threads;
  compiled.pins = pins;

  compiled.global = enabled("simplify") ? simplify(graph) : graph;              // nothing dead attracts communication
  compiled.layouts = complete_layouts(compiled.global, *mesh, pins);            // how every op is cut
  compiled.graph = partition(compiled.global, mesh, pins, compiled.layouts);    // local shapes and collectives
  if (enabled("share_collectives")) compiled.graph = simplify(compiled.graph);  // one collective for equal requests
  if (enabled("absorb")) compiled.graph = absorb(compiled.graph);               // updates take in the product of their gradient
  if (enabled("fuse")) compiled.graph = fuse(compiled.graph);                   // elementwise chains and epilogues
  if (enabled("schedule")) compiled.graph = schedule(compiled.graph);           // an order that frees memory early
  plan_all_memory(compiled, state);                                             // an offset for every buffer
  list_collectives(compiled);                                                   // what is sent, for the reports
  return compiled;
}

}  // namespace espalier

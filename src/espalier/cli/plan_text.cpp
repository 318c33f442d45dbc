#include "espalier/cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "espalier/base/text.h"
#include "espalier/cli/report.h"
#include "espalier/cli/wrap.h"

namespace espalier::cli {
namespace {

// "all 8 devices", "cpu:0 to cpu:3", "cpu:0, cpu:5", "cpu:0 and 511 more".
std::string group_name(const std::vector<size_t>& members, const std::vector<std::string>& devices) {
  const std::string& first = devices[members.front()];
  if (members.size() == 1) return first;
  if (members.size() == devices.size()) return fmt::format("all {}", members.size());
  if (members.back() - members.front() + 1 == members.size()) return fmt::format("{} to {}", first, devices[members.back()]);
  if (members.size() == 2) return fmt::format("{}, {}", first, devices[members[1]]);
  return fmt::format("{} and {} more", first, members.size() - 1);
}

std::vector<int64_t> figures_of(const nn::DeviceMemory& memory) {
  const MemoryUse& use = memory.use;
  return {use.variables, use.gradients, use.optimizer, use.activations, use.communication, memory.arena};
}

// Devices with equal figures, in order of the first of each group.
std::vector<std::vector<size_t>> equal_groups(const std::vector<nn::DeviceMemory>& memory) {
  std::map<std::vector<int64_t>, size_t> index;
  std::vector<std::vector<size_t>> groups;
  for (size_t d = 0; d < memory.size(); ++d) {
    auto [place, fresh] = index.emplace(figures_of(memory[d]), groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(d);
  }
  return groups;
}

constexpr size_t kMostGroups = 12;  // rows of the memory table; every device of a large uneven mesh may differ

}  // namespace

std::string batch_text(const Distribution& distribution, int64_t size) {
  const std::vector<int64_t> parts = batch_per_device(distribution, size);
  auto [least, most] = std::minmax_element(parts.begin(), parts.end());
  const std::string each = *least == *most ? counted(*most, "sample") + " on each device"
                                           : fmt::format("{} to {} on a device", format_count(*least), counted(*most, "sample"));
  const std::string axis = distribution.batch_axis
                               ? fmt::format("cut by '{}'", distribution.mesh.axis_names()[static_cast<size_t>(*distribution.batch_axis)])
                               : "not cut";
  return fmt::format("mesh {}, {} device{}\nbatch of {}, {}: {}\n", to_string(distribution.mesh), format_count(distribution.mesh.size()),
                     distribution.mesh.size() == 1 ? "" : "s", format_count(size), axis, each);
}

std::string variables_text(const nn::Trainer& trainer) {
  const Distribution& distribution = trainer.distribution();
  Table table({"variable", "shape", "layout", "on " + distribution.mesh.devices()[0], "bytes there"},
              {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight});
  for (const nn::VariableReport& variable : trainer.variables()) {
    TensorType local{variable.type.dtype, local_shape(variable.sharding, variable.type.shape, distribution.mesh, 0)};
    table.add({variable.path, to_string(variable.type.shape), to_string(layout_of(variable, distribution)), to_string(local.shape),
               format_bytes(local.bytes())});
  }
  return table.text();
}

std::string memory_text(const nn::Trainer& trainer) {
  const std::vector<nn::DeviceMemory> memory = trainer.memory();
  const std::vector<std::vector<size_t>> groups = equal_groups(memory);
  Table table({"device", "variables", "gradients", "optimizer", "activations", "communic.", "peak"},
              {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (size_t g = 0; g < std::min(groups.size(), kMostGroups); ++g) {
    std::vector<std::string> row = {group_name(groups[g], trainer.distribution().mesh.devices())};
    for (int64_t bytes : figures_of(memory[groups[g].front()])) row.push_back(format_bytes(bytes));
    table.add(std::move(row));
  }
  std::string text = "memory of a device, at the instant of its peak\n" + table.text();
  if (groups.size() > kMostGroups) text += fmt::format("and {} more kinds of device\n", groups.size() - kMostGroups);
  int64_t worst = 0;
  for (const nn::DeviceMemory& one : memory) worst = std::max(worst, one.arena);
  return text + fmt::format("{}: {} of {} on the fullest device\n", trainer.fits() ? "fits" : "does not fit", format_bytes(worst),
                            format_bytes(trainer.device_memory()));
}

std::string collectives_table(const std::vector<Collective>& collectives) {
  Table table({"collective", "over", "phase", "bytes", "why"}, {Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft});
  for (const Collective& one : collectives)
    table.add({one.op.empty() || one.op == "sum" ? one.kind : one.kind + " " + one.op, fmt::format("{}", fmt::join(one.axes, ", ")),
               to_string(one.phase), format_bytes(one.bytes), one.reason});
  return table.text();
}

std::string communication_text(const Compiled& step) {
  if (step.collectives.empty()) return "no communication\n";
  const int64_t most = *std::max_element(step.communication_bytes.begin(), step.communication_bytes.end());
  std::string text = fmt::format("communication of one step: a device receives at most {}\n", format_bytes(most));
  return text + collectives_table(step.collectives);
}

}  // namespace espalier::cli

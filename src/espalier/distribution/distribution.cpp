#include "espalier/distribution/distribution.h"

#include <fmt/format.h>

namespace espalier {

std::optional<int> find_batch_axis(const DeviceMesh& mesh, const std::optional<std::string>& name) {
  if (name == "none") return std::nullopt;
  if (name) return mesh.axis(*name, "batch axis");
  for (int a = 0; a < mesh.axis_count(); ++a) {
    const std::string& axis = mesh.axis_names()[static_cast<size_t>(a)];
    if (axis == "data" || axis == "batch") return a;
  }
  return 0;
}

Sharding batch_sharding(const Distribution& distribution, int rank) {
  Sharding sharding(rank);
  if (rank > 0 && distribution.batch_axis && distribution.mesh.shape()[static_cast<size_t>(*distribution.batch_axis)] > 1)
    sharding.dims[0].push_back(*distribution.batch_axis);
  return sharding;
}

std::vector<int64_t> batch_per_device(const Distribution& distribution, int64_t size) {
  Sharding sharding = batch_sharding(distribution, 1);
  std::vector<int64_t> samples;
  for (int64_t device = 0; device < distribution.mesh.size(); ++device)
    samples.push_back(local_shape(sharding, {size}, distribution.mesh, device)[0]);
  return samples;
}

Sharding optimizer_state_sharding(const Distribution& distribution, const Sharding& variable, const Dims& shape, int64_t bytes) {
  constexpr int64_t kWorthCutting = 128 << 10;  // bytes: below it a second collective costs more than the repeated update
  if (!distribution.batch_axis || bytes < kWorthCutting || (variable.cut_axes() >> *distribution.batch_axis & 1)) return variable;
  const int64_t parts = distribution.mesh.shape()[static_cast<size_t>(*distribution.batch_axis)];
  Sharding sharding = variable;
  if (const int d = first_whole_dim(variable, shape, parts); parts > 1 && d >= 0)
    sharding.dims[static_cast<size_t>(d)].push_back(*distribution.batch_axis);
  return sharding;
}

std::vector<std::string> idle_axes(const Distribution& distribution) {
  const DeviceMesh& mesh = distribution.mesh;
  AxisSet used = distribution.batch_axis ? AxisSet{1} << *distribution.batch_axis : 0;
  for (const LayoutRule& rule : distribution.layout_map)
    for (const DimAxes& dim : rule.layout.dims())
      for (const std::string& name : dim.names) used |= AxisSet{1} << mesh.axis(name, "layout rule '" + rule.key + "'");
  std::vector<std::string> texts;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (!(used >> a & 1) && mesh.shape()[static_cast<size_t>(a)] > 1)
      texts.push_back(fmt::format("axis '{}' cuts nothing: its {} devices repeat the same work", mesh.axis_names()[static_cast<size_t>(a)],
                                  mesh.shape()[static_cast<size_t>(a)]));
  return texts;
}

std::string describe(const Distribution& distribution) {
  const DeviceMesh& mesh = distribution.mesh;
  std::string batch = "every device sees the whole batch";
  if (distribution.batch_axis) {
    auto axis = static_cast<size_t>(*distribution.batch_axis);
    batch = fmt::format("axis '{}' cuts the batch in {}", mesh.axis_names()[axis], mesh.shape()[axis]);
  }
  std::string text = fmt::format("{} on mesh {}: {}", distribution.name, to_string(mesh), batch);
  size_t rules = distribution.layout_map.size();
  text += rules == 0 ? "; variables are replicated" : fmt::format("; {} layout rule{}", rules, rules == 1 ? "" : "s");
  for (const std::string& idle : idle_axes(distribution)) text += "; " + idle;
  return text;
}

}  // namespace espalier

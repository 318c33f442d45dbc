#include "espalier/mesh/device_mesh.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

#include "espalier/base/nearest.h"
#include "espalier/mesh/tensor_layout.h"

namespace espalier {
namespace {

constexpr int kMaxCuttingAxes = 8;                 // axes larger than 1: as many as one dim may be cut by
constexpr int64_t kMaxDevices = int64_t{1} << 20;  // far above any cluster; a mistyped size is refused before it allocates

// A whole decimal number without sign, nothing before or behind it.
std::optional<int64_t> read_number(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string size_list(const std::vector<int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string mesh_text(const std::vector<int64_t>& shape, const std::vector<std::string>& names) {
  return fmt::format("mesh {} with axes ('{}'{})", size_list(shape), fmt::join(names, "', '"), names.size() == 1 ? "," : "");
}

void check_sizes(const std::vector<int64_t>& shape, const std::vector<std::string>& names) {
  const std::string where = mesh_text(shape, names);
  if (shape.empty()) usage_error("the mesh has no axis", "", "give at least one, as in data=2,model=4");
  if (shape.size() != names.size())
    usage_error("sizes and axis names are not equally many", where,
                shape.size() > names.size() ? fmt::format("name the axis of size {}", shape[names.size()])
                                            : fmt::format("give a size for axis '{}'", names[shape.size()]));
  if (shape.size() > static_cast<size_t>(kMaxAxes))
    usage_error(fmt::format("the mesh has {} axes", shape.size()), "", fmt::format("use at most {}", kMaxAxes));
  int64_t product = 1, cutting = 0;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] < 1) usage_error(fmt::format("axis '{}' has size {}", names[a], shape[a]), where, "give a size of at least 1");
    if (shape[a] > kMaxDevices / product)
      usage_error(fmt::format("the mesh has more than {} devices", kMaxDevices), where, "give smaller sizes");
    product *= shape[a];
    cutting += shape[a] > 1;
  }
  if (cutting > kMaxCuttingAxes)
    usage_error(fmt::format("the mesh has {} axes larger than 1", cutting), where, fmt::format("use at most {}", kMaxCuttingAxes));
}

void check_names(const std::vector<int64_t>& shape, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) usage_error("an axis has no name", mesh_text(shape, names), "name every axis");
    if (!is_axis_name(name))
      usage_error(fmt::format("'{}' is no axis name", name), mesh_text(shape, names), "use letters, digits, '_', '-' or '.'");
    if (!seen.insert(name).second)
      usage_error(fmt::format("axis '{}' is named twice", name), mesh_text(shape, names), "give every axis a name of its own");
  }
}

void check_device_name(const std::string& device) {
  constexpr std::string_view kPrefix = "cpu:";
  std::string_view text = device;
  if (text.starts_with(kPrefix)) {
    std::string_view digits = text.substr(kPrefix.size());
    std::optional<int64_t> number = read_number(digits);
    if (number && *number < kMaxDevices && (digits == "0" || digits[0] != '0')) return;
  }
  usage_error(fmt::format("unknown device '{}'", device), "",
              fmt::format("devices are called cpu:0, cpu:1, ... up to cpu:{}", kMaxDevices - 1));
}

void check_devices(const std::vector<std::string>& devices, const std::string& mesh, int64_t product) {
  std::map<std::string, size_t> position;
  for (size_t i = 0; i < devices.size(); ++i) {
    check_device_name(devices[i]);
    auto [first, fresh] = position.emplace(devices[i], i);
    if (!fresh)
      usage_error(fmt::format("device '{}' is listed twice", devices[i]), fmt::format("devices {} and {} of {}", first->second, i, mesh),
                  "list every device once");
  }
  if (static_cast<int64_t>(devices.size()) != product)
    usage_error(fmt::format("the mesh has {} places but the list of devices has length {}", product, devices.size()), mesh,
                static_cast<int64_t>(devices.size()) < product ? fmt::format("list more, or none for cpu:0 to cpu:{}", product - 1)
                                                               : "leave some out, or give a larger mesh");
}

}  // namespace

std::vector<std::string> list_devices(int64_t count) {
  if (count < 0 || count > kMaxDevices)
    usage_error(fmt::format("{} devices are asked for", count), "", fmt::format("ask for 0 to {}", kMaxDevices));
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("cpu:{}", i));
  return names;
}

DeviceMesh::DeviceMesh(std::vector<int64_t> shape, std::vector<std::string> axis_names, std::vector<std::string> devices)
    : shape_(std::move(shape)), strides_(shape_.size(), 1), axis_names_(std::move(axis_names)), devices_(std::move(devices)) {
  check_sizes(shape_, axis_names_);
  check_names(shape_, axis_names_);
  for (size_t a = shape_.size() - 1; a > 0; --a) strides_[a - 1] = strides_[a] * shape_[a];
  int64_t product = strides_[0] * shape_[0];
  if (devices_.empty())
    devices_ = list_devices(product);
  else
    check_devices(devices_, mesh_text(shape_, axis_names_), product);
}

DeviceMesh DeviceMesh::parse(const std::string& text, std::vector<std::string> devices) {
  const std::string where = fmt::format("mesh '{}'", text), todo = "write name=size for each axis, as in data=2,model=4";
  std::vector<int64_t> shape;
  std::vector<std::string> names;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string entry = text.substr(at, end - at);
    size_t equals = entry.find('=');
    if (equals == std::string::npos) usage_error(fmt::format("'{}' is no axis", entry), where, todo);
    std::string digits = entry.substr(equals + 1);
    bool negative = digits.starts_with('-');
    std::optional<int64_t> size = read_number(std::string_view(digits).substr(negative ? 1 : 0));
    if (!size) usage_error(fmt::format("'{}' is no size for axis '{}'", digits, entry.substr(0, equals)), where, todo);
    names.push_back(entry.substr(0, equals));
    shape.push_back(negative ? -*size : *size);
    at = end + 1;
  }
  return DeviceMesh(std::move(shape), std::move(names), std::move(devices));
}

std::optional<int> DeviceMesh::find_axis(const std::string& name) const {
  for (size_t a = 0; a < axis_names_.size(); ++a)
    if (axis_names_[a] == name) return static_cast<int>(a);
  return std::nullopt;
}

int DeviceMesh::axis(const std::string& name, const std::string& where) const {
  if (std::optional<int> found = find_axis(name)) return *found;
  usage_error(fmt::format("the mesh {} has no axis '{}'", to_string(*this), name), where, suggest(name, axis_names_));
}

std::string to_string(const DeviceMesh& mesh) {
  std::vector<std::string> axes;
  for (int a = 0; a < mesh.axis_count(); ++a)
    axes.push_back(fmt::format("'{}': {}", mesh.axis_names()[static_cast<size_t>(a)], mesh.shape()[static_cast<size_t>(a)]));
  return fmt::format("{{{}}}", fmt::join(axes, ", "));
}

}  // namespace espalier

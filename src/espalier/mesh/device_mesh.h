#pragma once
// Devices in a grid with named axes: `DeviceMesh({2, 4}, {"data", "model"})`. Immutable; everything is checked at construction.
// Not here: what a device can do (plan/), or which process holds it (comm/).
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/dims.h"

namespace espalier {

inline constexpr int kMaxAxes = 16;  // of one mesh

// The first `count` device names of this machine, "cpu:0" to "cpu:count-1". Devices are virtual: any number live in one process.
std::vector<std::string> list_devices(int64_t count);

class DeviceMesh {
 public:
  // shape: sizes of the axes, each at least 1. devices: row-major over the shape; empty means list_devices(product).
  // Errors: an empty shape, a size below 1, names and sizes of different length, a name twice or empty, a device twice or not of the
  // form "cpu:N", a number of devices that is not the product of the sizes, more than 16 axes, 8 axes larger than 1, 2^20 devices.
  DeviceMesh(std::vector<int64_t> shape, std::vector<std::string> axis_names, std::vector<std::string> devices = {});
  // A 1-D mesh with one axis; the name is one axis, never one a letter. A template, so that no braced list can become this `name`.
  template <class Name>
  requires std::convertible_to<Name, std::string> DeviceMesh(int64_t size, Name axis_name)
      : DeviceMesh(std::vector<int64_t>{size}, std::vector<std::string>{std::string(axis_name)}) {}

  // "data=2,model=4" as on the command line.
  static DeviceMesh parse(const std::string& text, std::vector<std::string> devices = {});

  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<std::string>& axis_names() const { return axis_names_; }
  const std::vector<std::string>& devices() const { return devices_; }
  int64_t size() const { return static_cast<int64_t>(devices_.size()); }
  int axis_count() const { return static_cast<int>(shape_.size()); }

  std::optional<int> find_axis(const std::string& name) const;
  // An Error with the nearest axis name when there is none; `where` says who asked.
  int axis(const std::string& name, const std::string& where) const;
  // Position of a device on one axis, and the distance in device numbers between neighbours on it.
  int64_t coordinate(int64_t device, int axis) const { return device / stride(axis) % shape_[static_cast<size_t>(axis)]; }
  int64_t stride(int axis) const { return strides_[static_cast<size_t>(axis)]; }

  friend bool operator==(const DeviceMesh&, const DeviceMesh&) = default;

 private:
  std::vector<int64_t> shape_, strides_;
  std::vector<std::string> axis_names_, devices_;
};

// "{'data': 2, 'model': 4}".
std::string to_string(const DeviceMesh& mesh);

}  // namespace espalier

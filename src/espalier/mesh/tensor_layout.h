#pragma once
// How a tensor is cut, in the user's words: for each dim the names of the mesh axes that cut it, none, one or several (major first).
// It knows no mesh and no shape; `Sharding` (sharding.h) is the same thing bound to a mesh.
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// The axes that cut one dim. Implicit, so that layouts can be written {nullopt, "model"} and {{"data", "model"}, nullopt}.
struct DimAxes {
  DimAxes() = default;
  DimAxes(std::nullopt_t) {}
  DimAxes(const char* axis) : names{axis} {}
  DimAxes(std::string axis) : names{std::move(axis)} {}
  DimAxes(std::initializer_list<const char*> axes) : names(axes.begin(), axes.end()) {}
  explicit DimAxes(std::vector<std::string> axes) : names(std::move(axes)) {}
  std::vector<std::string> names;
  friend bool operator==(const DimAxes&, const DimAxes&) = default;
};

class TensorLayout {
 public:
  TensorLayout() = default;
  // Errors: an axis that appears twice (an axis cuts one dim only), a name that is no axis name.
  TensorLayout(std::initializer_list<DimAxes> dims) : TensorLayout(std::vector<DimAxes>(dims)) {}
  explicit TensorLayout(std::vector<DimAxes> dims);

  // Reads what to_string prints: "(None, 'model')", "('model',)", "(('data', 'model'), None)", "()"; a last comma may be left out.
  static TensorLayout parse(const std::string& text);

  const std::vector<DimAxes>& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;

 private:
  std::vector<DimAxes> dims_;
};

std::string to_string(const TensorLayout& layout);

// What an axis may be called: not empty, and free of space, control characters and ' " ` , = ( ) [ ] { } \ so that text forms read back.
bool is_axis_name(std::string_view name);

}  // namespace espalier

template <>
struct std::hash<espalier::TensorLayout> {
  size_t operator()(const espalier::TensorLayout& layout) const { return std::hash<std::string>()(espalier::to_string(layout)); }
};

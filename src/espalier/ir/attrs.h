#pragma once
// Named constants of an op: axes, factors, constants, the body of a fused op. A short sorted list; an absent name is an internal error.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace espalier {

class Graph;

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::shared_ptr<const Graph>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> attrs);

  void set(std::string_view name, Attr value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;  // accepts an integer too
  const std::string& text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const Graph& graph(std::string_view name) const;

  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  friend bool operator==(const Attrs& a, const Attrs& b) { return a.entries_ == b.entries_; }

 private:
  const Attr* find(std::string_view name) const;
  std::vector<std::pair<std::string, Attr>> entries_;
};

}  // namespace espalier

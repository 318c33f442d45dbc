#include "espalier/ir/attrs.h"

#include <algorithm>

#include "espalier/base/error.h"

namespace espalier {
namespace {

template <class T>
const T& typed(const Attr* attr) {
  ESPALIER_ASSERT(attr != nullptr && std::holds_alternative<T>(*attr));
  return std::get<T>(*attr);
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> attrs) {
  for (const auto& [name, value] : attrs) set(name, value);
}

void Attrs::set(std::string_view name, Attr value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name, [](const auto& entry, std::string_view n) { return entry.first < n; });
  if (at != entries_.end() && at->first == name)
    at->second = std::move(value);
  else
    entries_.insert(at, {std::string(name), std::move(value)});
}

const Attr* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

int64_t Attrs::integer(std::string_view name) const { return typed<int64_t>(find(name)); }
double Attrs::number(std::string_view name) const {
  const Attr* attr = find(name);
  if (attr != nullptr && std::holds_alternative<int64_t>(*attr)) return static_cast<double>(std::get<int64_t>(*attr));
  return typed<double>(attr);
}
const std::string& Attrs::text(std::string_view name) const { return typed<std::string>(find(name)); }
const std::vector<int64_t>& Attrs::integers(std::string_view name) const { return typed<std::vector<int64_t>>(find(name)); }
const Graph& Attrs::graph(std::string_view name) const { return *typed<std::shared_ptr<const Graph>>(find(name)); }

}  // namespace espalier

#include "espalier/base/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "espalier/base/error.h"

namespace espalier {

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.{}f} {}", value, value < 100 ? 1 : 0, kUnits[unit]);
}

int64_t parse_bytes(const std::string& text, const std::string& option) {
  static constexpr std::array<std::pair<const char*, int64_t>, 10> kUnits = {{{"", 1},
                                                                              {"B", 1},
                                                                              {"KB", 1000},
                                                                              {"MB", 1000'000},
                                                                              {"GB", 1000'000'000},
                                                                              {"TB", 1000'000'000'000},
                                                                              {"KiB", int64_t{1} << 10},
                                                                              {"MiB", int64_t{1} << 20},
                                                                              {"GiB", int64_t{1} << 30},
                                                                              {"TiB", int64_t{1} << 40}}};
  double value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  while (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  for (const auto& [name, factor] : kUnits)
    if (status == std::errc() && unit == name && std::isfinite(value) && value > 0 && value * static_cast<double>(factor) < 0x1p62)
      return static_cast<int64_t>(value * static_cast<double>(factor));
  usage_error(fmt::format("'{}' is not a memory size", text), option, "write a number and a unit, as in 4GiB or 500MB");
}

std::string format_count(int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return count < 0 ? "-" + digits : digits;
}

std::string counted(int64_t count, const std::string& noun) { return format_count(count) + " " + noun + (count == 1 ? "" : "s"); }

}  // namespace espalier

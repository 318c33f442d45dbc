#include "bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace espalier::bench {

void Report::print() const {
  if (rows_.size() == 1) return;
  std::vector<size_t> widths(rows_[0].size());
  for (const std::vector<std::string>& row : rows_)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max({widths[c], row[c].size(), size_t{3}});
  std::string text = title_ + "\n\n";
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < widths.size(); ++c) text += fmt::format("| {:{}} ", c < rows_[r].size() ? rows_[r][c] : "", widths[c]);
    text += "|\n";
    if (r != 0) continue;
    for (size_t width : widths) text += "|" + std::string(width + 2, '-');
    text += "|\n";
  }
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string fixed(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

std::string verdict(double value, double least, double aim) { return value >= aim ? "aim" : value >= least ? "ok" : "BELOW"; }

}  // namespace espalier::bench

#pragma once
// Tables as Markdown, aligned, so that a terminal and a page both read them.
#include <string>
#include <vector>

namespace espalier::bench {

class Report {
 public:
  Report(std::string title, std::vector<std::string> headings) : title_(std::move(title)), rows_({std::move(headings)}) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const;  // to standard output at once; nothing when there are no rows

 private:
  std::string title_;
  std::vector<std::vector<std::string>> rows_;
};

std::string fixed(double value, int digits);

// "aim", "ok" or "BELOW": whether a value reaches its bar (the more the better; negate what should be little).
std::string verdict(double value, double least, double aim);

}  // namespace espalier::bench

#pragma once
// Text for 80 columns. Columns are counted as characters of UTF-8, which is what the drawings use.
#include <string>
#include <vector>

namespace espalier::cli {

inline constexpr size_t kColumns = 80;

// Columns that a text takes on a terminal.
size_t columns_of(const std::string& text);

// Breaks at spaces so that lines stay within kColumns; `indent` spaces before each line but the first, which is taken to begin there too.
// `continuation` ends every line but the last: " \\" for a shell. A word longer than a line stays whole.
std::string wrap(const std::string& text, size_t indent, const std::string& continuation = "");

enum class Align { kLeft, kRight };

// A table whose columns are as wide as their widest cell, two spaces apart. When it would be wider than kColumns, the last column is
// wrapped; when that is not enough, cells of the widest column are shortened in the middle.
class Table {
 public:
  Table(std::vector<std::string> headings, std::vector<Align> aligns) : aligns_(std::move(aligns)) { add(std::move(headings)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace espalier::cli

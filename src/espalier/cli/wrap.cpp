#include "espalier/cli/wrap.h"

#include <algorithm>

namespace espalier::cli {
namespace {

constexpr size_t kGap = 2;                                     // spaces between columns
constexpr size_t kLeastLastColumn = 24, kMostLastColumn = 48;  // a wrapped column narrower than this is no pleasure to read

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// The first `count` characters of UTF-8.
std::string head(const std::string& text, size_t count) {
  size_t at = 0;
  for (size_t seen = 0; at < text.size(); ++at)
    if (begins_character(text[at]) && seen++ == count) break;
  return text.substr(0, at);
}

std::string tail(const std::string& text, size_t count) {
  size_t at = text.size();
  for (size_t seen = 0; at > 0 && seen < count; --at) seen += begins_character(text[at - 1]);
  return text.substr(at);
}

// "sequential/den…e_1/kernel".
std::string shortened(const std::string& text, size_t width) {
  if (columns_of(text) <= width) return text;
  size_t front = (width - 1) / 2;
  return head(text, front) + "…" + tail(text, width - 1 - front);
}

std::string spaces(size_t count) { return std::string(count, ' '); }

}  // namespace

size_t columns_of(const std::string& text) { return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character)); }

std::string wrap(const std::string& text, size_t indent, const std::string& continuation) {
  const size_t width = kColumns - columns_of(continuation);
  std::string out;
  size_t column = indent;
  for (const std::string& word : words_of(text)) {
    size_t length = columns_of(word);
    if (column > indent && column + 1 + length > width) {
      out += continuation + "\n" + spaces(indent);
      column = indent;
    } else if (column > indent) {
      out += " ";
      ++column;
    }
    out += word;
    column += length;
  }
  return out;
}

std::string Table::text() const {
  const size_t columns = aligns_.size();
  std::vector<size_t> width(columns, 0);
  for (const auto& row : rows_)
    for (size_t c = 0; c < columns; ++c) width[c] = std::max(width[c], columns_of(row[c]));
  size_t longest_word = kLeastLastColumn;
  for (const auto& row : rows_)
    for (const std::string& word : words_of(row[columns - 1])) longest_word = std::max(longest_word, columns_of(word));
  const size_t least_last = std::min({width.back(), longest_word, kMostLastColumn});
  auto before_last = [&] {
    size_t sum = 0;
    for (size_t c = 0; c + 1 < columns; ++c) sum += width[c] + kGap;
    return sum;
  };
  while (before_last() + least_last > kColumns) {
    auto widest = std::max_element(width.begin(), width.end() - 1);
    if (columns < 2 || *widest <= 8) break;
    --*widest;
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c + 1 < columns; ++c) {
      std::string cell = shortened(row[c], width[c]);
      std::string pad = spaces(width[c] - columns_of(cell));
      line += (aligns_[c] == Align::kRight ? pad + cell : cell + pad) + spaces(kGap);
    }
    const std::string& last = row[columns - 1];
    size_t fill = before_last() + width.back() <= kColumns ? width.back() - columns_of(last) : 0;
    line += aligns_.back() == Align::kRight ? spaces(fill) + last : wrap(last, before_last());
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace espalier::cli

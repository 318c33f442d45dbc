#pragma once
// Texts as tests read them: files, and what is printed line by line.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace espalier {

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A file that stands beside the tests.
inline std::string content(const std::string& name) { return content_of(std::string(ESPALIER_TEST_DIR) + "/" + name); }

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Of a line in UTF-8.
inline int columns_of(const std::string& line) {
  return static_cast<int>(std::count_if(line.begin(), line.end(), [](unsigned char c) { return c < 0x80 || c >= 0xC0; }));
}

}  // namespace espalier

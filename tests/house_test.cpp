// Uses: ops
// The architecture as a test: a folder includes only folders that stand before it, passes know no op by name, sources stay short.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "espalier/ir/op_def.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = fs::path(ESPALIER_TEST_DIR) / ".." / "src" / "espalier";

// From the ground up (docs/design.md).
const std::vector<std::string> kFolders = {"base",    "mesh", "distribution", "ir", "ops",     "passes", "comm",
                                           "runtime", "data", "checkpoint",   "nn", "interop", "cli"};

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<fs::path> sources_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") files.push_back(entry.path());
  return files;
}

TEST(House, FoldersIncludeOnlyWhatStandsBeforeThem) {
  const std::regex include(R"re(#include "espalier/([a-z]+)/.*")re");
  std::set<std::string> allowed;
  int checked = 0;
  for (const std::string& folder : kFolders) {
    allowed.insert(folder);
    for (const fs::path& file : sources_in(kSource / folder))
      for (const std::string& line : lines_of(file))
        if (std::smatch match; std::regex_search(line, match, include)) {
          EXPECT_TRUE(allowed.count(match[1]) == 1) << file << " includes " << line;
          ++checked;
        }
  }
  EXPECT_GT(checked, 300);
  for (const fs::directory_entry& entry : fs::directory_iterator(kSource))
    EXPECT_EQ(allowed.count(entry.path().filename().string()), 1u) << entry.path() << " has no place in the order of folders";
}

TEST(House, PassesKnowNoOpByName) {
  // A pass may write the name of an op it inserts (a constant, a sum, a collective), never decide by one.
  const std::regex compared(R"re((==|!=|case)\s*"([a-z0-9_]+)")re");
  for (const char* folder : {"passes", "comm", "runtime"})
    for (const fs::path& file : sources_in(kSource / folder))
      for (const std::string& line : lines_of(file))
        if (std::smatch match; std::regex_search(line, match, compared)) {
          EXPECT_EQ(find_op(match[2]), nullptr) << file << ": " << line;
        }
}

TEST(House, SourcesStayShort) {
  for (const std::string& folder : kFolders)
    for (const fs::path& file : sources_in(kSource / folder)) EXPECT_LE(lines_of(file).size(), 600u) << file;
}

}  // namespace
}  // namespace espalier

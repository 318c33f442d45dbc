// Uses: data
// The table of wrong inputs, adversity/*.txt: what the program answers to each, word for word, and that it answers before it has allocated
// or written anything. A file of the table is read like a session in a terminal:
//
//   # an axis named twice
//   > layout.json {"sequential/dense/kernel": [null, "model"]}     a file to make first, of one line
//   $ plan two_dense.json --mesh model=2,model=2 --layout layout.json
//   error: axis 'model' is named twice: ...                         standard error, whole
//   exit 2
//
// "..." stands for any figures: those of memory depend on the processor. A title is for all commands up to the next.
// Each file runs in a directory of its own, which holds the models of models/, the data of data/ and the damaged files of
// adversity_files.h. The last words of a command may be "< FILE", its standard input.
#include <fmt/format.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "adversity_files.h"
#include "program.h"
#include "sanitizers.h"

namespace espalier {
namespace {

// Resident memory of a program that refuses: itself and its libraries are 12 MB, and a text of more than 16 MB is not read to its end.
constexpr int64_t kMostResident = int64_t{kSanitizesAddresses ? 400 : 64} << 20;

struct Case {
  std::string title;
  int line = 0;
  std::vector<std::pair<std::string, std::string>> files;  // name, content
  std::string command;
  std::string printed;  // standard error
  int code = 0;
};

std::vector<Case> cases_of(const std::string& path) {
  std::vector<Case> cases;
  Case now;
  std::istringstream text(content_of(path));
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    if (line.starts_with("# ")) {
      now.title = rest;
    } else if (line.starts_with("> ")) {
      now.files.emplace_back(rest.substr(0, rest.find(' ')), rest.substr(rest.find(' ') + 1));
    } else if (line.starts_with("$ ")) {
      now.command = rest, now.line = number;
    } else if (line.starts_with("exit ")) {
      now.code = std::stoi(line.substr(5));
      cases.push_back(std::move(now));
      now = Case();
      now.title = cases.back().title;
    } else if (!line.empty()) {
      now.printed += line + "\n";
    }
  }
  return cases;
}

// Words between spaces; a word in 'quotes' may be empty or hold spaces.
Words words_of(const std::string& command) {
  Words words;
  for (size_t at = 0; at < command.size();) {
    if (command[at] == ' ') {
      ++at;
      continue;
    }
    const bool quoted = command[at] == '\'';
    const size_t begin = at + quoted, end = std::min(command.find(quoted ? '\'' : ' ', begin), command.size());
    words.push_back(command.substr(begin, end - begin));
    at = end + 1;
  }
  return words;
}

// Whether the text is the expected one, in which "..." stands for anything within a line.
bool same(const std::string& text, const std::string& expected) {
  std::string pattern;
  for (size_t at = 0; at < expected.size(); ++at) {
    if (expected.compare(at, 3, "...") == 0)
      pattern += ".*", at += 2;
    else
      pattern += std::string("\\[](){}.*+?^$|").find(expected[at]) == std::string::npos ? std::string(1, expected[at])
                                                                                        : std::string("\\") + expected[at];
  }
  return std::regex_match(text, std::regex(pattern));
}

std::set<std::string> files_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

class Adversity : public testing::TestWithParam<std::string> {};

TEST_P(Adversity, IsAnsweredByOneClearLine) {
  Scratch scratch;
  make_adversity_files(scratch);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  const std::vector<Case> cases = cases_of(ESPALIER_TEST_DIR "/adversity/" + GetParam() + ".txt");
  for (const Case& one : cases) {
    SCOPED_TRACE(fmt::format("adversity/{}.txt:{}: {}", GetParam(), one.line, one.title));
    for (const auto& [name, content] : one.files) scratch.write(name, content);
    Words words = words_of(one.command);
    ProcessOptions options;
    if (words.size() > 2 && words[words.size() - 2] == "<") {
      options.input = content_of(words.back());
      words.resize(words.size() - 2);
    }
    const std::set<std::string> files = files_in(".");
    const Finished finished = espalier(words, options);
    EXPECT_TRUE(same(finished.err, one.printed)) << finished.err << "instead of\n" << one.printed;
    EXPECT_EQ(finished.code, one.code);
    EXPECT_EQ(files_in("."), files) << "a file is left";
    EXPECT_LE(finished.peak_resident_bytes, kMostResident);
    if (one.code == 0) continue;
    EXPECT_TRUE(finished.out.empty() || one.code == 9) << finished.out;  // `plan` reports what does not fit, too
    EXPECT_FALSE(one.title.empty());
  }
  std::filesystem::current_path(before);
  EXPECT_GE(cases.size(), 5u);
}

INSTANTIATE_TEST_SUITE_P(Table, Adversity, testing::Values("mesh", "layout", "options", "model", "data", "weights", "storage"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace espalier

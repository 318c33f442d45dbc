#include "espalier/cli/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "espalier/base/error.h"
#include "espalier/base/nearest.h"

namespace espalier::cli {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& word, const std::string& takes) {
  usage_error(fmt::format("{} takes {}", option, takes), fmt::format("'{}'", word), "see --help for an example");
}

template <class T>
bool read_whole(const std::string& word, T* value) {
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

}  // namespace

int64_t read_integer(const std::string& option, const std::string& word, int64_t least) {
  int64_t value = 0;
  if (!read_whole(word, &value) || value < least) refuse(option, word, fmt::format("a whole number of at least {}", least));
  return value;
}

double read_number(const std::string& option, const std::string& word, double least) {
  double value = 0;
  if (!read_whole(word, &value) || !std::isfinite(value) || value < least)
    refuse(option, word, fmt::format("a number of at least {}", least));
  return value;
}

bool read_bool(const std::string& option, const std::string& word) {
  if (word == "true" || word == "True" || word == "1") return true;
  if (word == "false" || word == "False" || word == "0") return false;
  refuse(option, word, "true or false");
}

size_t read_word(const std::string& option, const std::string& word, const std::vector<std::string>& words) {
  auto at = std::find(words.begin(), words.end(), word);
  if (at != words.end()) return static_cast<size_t>(at - words.begin());
  usage_error(fmt::format("{} takes {}", option, fmt::join(words, " or ")), fmt::format("'{}'", word), suggest(word, words));
}

std::vector<std::string> read_list(const std::string& option, const std::string& word) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= word.size();) {
    size_t end = std::min(word.find(',', begin), word.size());
    if (end == begin) refuse(option, word, "words separated by commas, none of them empty");
    items.push_back(word.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

}  // namespace espalier::cli

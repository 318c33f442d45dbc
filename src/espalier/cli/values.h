#pragma once
// The words behind options, read strictly: a number is the whole word or an error that says what the option takes.
#include <cstdint>
#include <string>
#include <vector>

namespace espalier::cli {

int64_t read_integer(const std::string& option, const std::string& word, int64_t least);
double read_number(const std::string& option, const std::string& word, double least);  // finite
bool read_bool(const std::string& option, const std::string& word);                    // "true" or "false"
// Which of the words it is.
size_t read_word(const std::string& option, const std::string& word, const std::vector<std::string>& words);
// Words between commas, none of them empty.
std::vector<std::string> read_list(const std::string& option, const std::string& word);

}  // namespace espalier::cli

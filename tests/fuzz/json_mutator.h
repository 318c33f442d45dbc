#pragma once
// Changes JSON as JSON, since almost every change of single bytes ends at the parser: values replaced, moved, removed and doubled.
#include <cstddef>
#include <string>

namespace espalier::fuzz {

// A changed `text` of at most `most` bytes; "" when it is no JSON or is too deep to copy, or when nothing came of it.
std::string mutate_json(const std::string& text, unsigned seed, size_t most);

}  // namespace espalier::fuzz

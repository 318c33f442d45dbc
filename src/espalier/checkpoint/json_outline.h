#pragma once
// What is looked for in JSON before it is built: depth, and keys given twice, of which the parser forgets the first. In a pass of its own,
// in linear time: the parser's callback walks all entries of an object after each one that is an object itself (nlohmann 3.11), and a
// header of 30,000 tensors took half a minute.
#include <optional>
#include <string>
#include <vector>

namespace espalier {

struct JsonOutline {
  bool too_deep = false;             // more than the brackets allowed stand inside one another
  std::optional<std::string> twice;  // a key that stands twice in one object
  std::vector<std::string> keys;     // of the outermost object, in the order of the text
};

// Looks through the text up to the first fault. A syntax error is no fault here; the parser tells where it is.
JsonOutline outline_json(const std::string& text, size_t deepest);

}  // namespace espalier

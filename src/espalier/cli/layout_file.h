#pragma once
// The file behind --layout: a JSON object from a variable's path, or a regular expression for whole paths, to a list with one entry a dim:
//   {"sequential/dense/kernel": [null, "model"], "sequential/dense_\\d+/bias": [["data", "model"]]}
// Keys keep their order. What the rules match is decided later (LayoutMap::resolve).
#include <string>

#include "espalier/base/file.h"
#include "espalier/mesh/layout_map.h"

namespace espalier::cli {

// Errors (kUsage) name the file: no such file, not JSON (with line and column), a key twice, an entry of another form (with key and place);
// and what LayoutMap::insert refuses.
LayoutMap read_layout_file(const FileSystem& files, const std::string& path, const DeviceMesh& mesh);
LayoutMap read_layout(const std::string& text, const std::string& path, const DeviceMesh& mesh);

}  // namespace espalier::cli

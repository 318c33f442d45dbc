#include "espalier/cli/layout_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "espalier/base/error.h"
#include "espalier/checkpoint/json_outline.h"

namespace espalier::cli {
namespace {

using Parsed = nlohmann::json;

constexpr int64_t kMaxFile = 16 << 20;  // bytes; a rule for each variable of the largest models takes a few hundred KiB
constexpr size_t kMaxDepth = 16;        // brackets; a right file has 3, and showing a wrong value recurses over them
constexpr const char* kForm = "write a list with one entry a dim: null, \"axis\" or [\"axis\", \"axis\"]";

// Of the byte with this number, counted from 1.
std::string position(const std::string& text, size_t byte) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < text.size() && i + 1 < byte; ++i) {
    ++column;
    if (text[i] == '\n') ++line, column = 1;
  }
  return fmt::format("line {}, column {}", line, column);
}

// The library keeps the last of two equal keys; two rules under one key is an error here.
Parsed parse(const std::string& text, const std::string& path, const JsonOutline& outline) {
  const std::string where = fmt::format("layout file '{}'", path);
  if (outline.too_deep) usage_error(fmt::format("more than {} brackets inside one another", kMaxDepth), where, kForm);
  if (outline.twice) usage_error(fmt::format("key '{}' stands twice", *outline.twice), where, "keep one of the two");
  try {
    return Parsed::parse(text);
  } catch (const Parsed::parse_error& e) {
    usage_error("the layout file is not JSON", fmt::format("'{}', {}", path, position(text, e.byte)),
                "write an object such as {\"sequential/dense/kernel\": [null, \"model\"]}");
  } catch (const Parsed::exception&) {  // a number beyond a double
    usage_error("a number is too large", where, kForm);
  }
}

std::string shown(const Parsed& value) {
  std::string text = value.dump(-1, ' ', false, Parsed::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::vector<std::string> axes_of(const Parsed& list, const std::string& where) {
  std::vector<std::string> axes;
  for (const Parsed& axis : list) {
    if (!axis.is_string()) usage_error(fmt::format("'{}' is no axis name", shown(axis)), where, kForm);
    axes.push_back(axis.get<std::string>());
  }
  if (axes.empty()) usage_error("'[]' names no axis", where, "write null for a dim that is not cut");
  return axes;
}

TensorLayout layout_of(const Parsed& entries, const std::string& key, const std::string& path) {
  const std::string where = fmt::format("layout rule '{}' in '{}'", key, path);
  if (!entries.is_array()) usage_error(fmt::format("'{}' is no layout", shown(entries)), where, kForm);
  std::vector<DimAxes> dims;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Parsed& entry = entries[i];
    const std::string entry_where = fmt::format("entry {} of {}", i, where);
    if (entry.is_null())
      dims.emplace_back();
    else if (entry.is_string())
      dims.emplace_back(entry.get<std::string>());
    else if (entry.is_array())
      dims.emplace_back(axes_of(entry, entry_where));
    else
      usage_error(fmt::format("'{}' is no entry of a layout", shown(entry)), entry_where, kForm);
  }
  try {
    return TensorLayout(std::move(dims));
  } catch (const Error& error) {  // which names the layout and not whose it is
    usage_error(where, error.what());
  }
}

}  // namespace

LayoutMap read_layout(const std::string& text, const std::string& path, const DeviceMesh& mesh) {
  const JsonOutline outline = outline_json(text, kMaxDepth);
  const Parsed rules = parse(text, path, outline);
  if (!rules.is_object())
    usage_error("the layout file holds no object", fmt::format("'{}' begins with '{}'", path, shown(rules)),
                "write an object such as {\"sequential/dense/kernel\": [null, \"model\"]}");
  LayoutMap map(mesh);
  for (const std::string& key : outline.keys) map.insert(key, layout_of(rules.at(key), key, path));  // in the order of the file
  return map;
}

LayoutMap read_layout_file(const FileSystem& files, const std::string& path, const DeviceMesh& mesh) {
  FileKind kind = files.kind(path);
  if (kind == FileKind::kMissing) usage_error("there is no such layout file", fmt::format("'{}'", path), "check the path behind --layout");
  if (kind == FileKind::kDirectory) usage_error("the layout file is a directory", fmt::format("'{}'", path), "give a JSON file");
  return read_layout(files.read_all(path, kMaxFile), path, mesh);
}

}  // namespace espalier::cli

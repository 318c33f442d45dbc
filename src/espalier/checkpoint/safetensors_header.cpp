#include "espalier/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "espalier/base/text.h"
#include "espalier/checkpoint/json_outline.h"

namespace espalier {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

constexpr std::pair<const char*, NumberType> kTypes[] = {{"F32", NumberType::kF32},   {"F64", NumberType::kF64}, {"F16", NumberType::kF16},
                                                         {"BF16", NumberType::kBF16}, {"I32", NumberType::kI32}, {"I64", NumberType::kI64},
                                                         {"I16", NumberType::kI16},   {"I8", NumberType::kI8},   {"U8", NumberType::kU8},
                                                         {"U16", NumberType::kU16},   {"U32", NumberType::kU32}, {"U64", NumberType::kU64},
                                                         {"BOOL", NumberType::kBool}};

[[noreturn]] void refuse(const std::string& what, const std::string& where) {
  throw Error(ErrorKind::kWeights, what, where, "the file is damaged or not safetensors; save it again");
}

// Parses, refusing names given twice (JSON's own rule is to forget the first) and nesting deeper than a header's.
Json parse_strictly(const std::string& text, const std::string& where) {
  constexpr size_t kDeepest = 3;  // header, tensor, shape
  const JsonOutline outline = outline_json(text, kDeepest);
  if (outline.too_deep) refuse("the header is nested too deep", where);
  if (outline.twice) refuse(fmt::format("the header names '{}' twice", *outline.twice), where);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    refuse(fmt::format("the header is not JSON ({})", error.what()), where);
  }
}

const Json& member(const Json& entry, const char* key, const std::string& where) {
  auto found = entry.find(key);
  if (found == entry.end()) refuse(fmt::format("'{}' is missing", key), where);
  return *found;
}

std::vector<int64_t> sizes(const Json& list, const char* key, const std::string& where) {
  if (!list.is_array()) refuse(fmt::format("'{}' is not a list", key), where);
  std::vector<int64_t> result;
  for (const Json& item : list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t{1} << 62)
      refuse(fmt::format("'{}' holds '{}', which is not a size", key, item.dump(-1, ' ', false, Json::error_handler_t::replace)), where);
    result.push_back(item.get<int64_t>());
  }
  return result;
}

NumberType number_type(const Json& dtype, const std::string& where) {
  std::string known;
  for (const auto& [name, type] : kTypes) {
    if (dtype == name) return type;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorKind::kWeights, fmt::format("dtype {} is not known", dtype.dump(-1, ' ', false, Json::error_handler_t::replace)), where,
              fmt::format("convert it; known: {}", known));
}

int64_t tensor_bytes(const TensorSpec& spec, const std::string& where) {
  int64_t bytes = size_of(spec.type);  // without zeros: strides of an empty tensor are computed too
  bool empty = false;
  for (int64_t size : spec.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      refuse(fmt::format("shape {} is too large", to_string(spec.shape)), where);
  }
  return empty ? 0 : bytes;
}

struct Entry {
  TensorSpec spec;
  int64_t begin = 0, end = 0;
};

Entry read_entry(const std::string& name, const Json& json, int64_t data_bytes, const std::string& path) {
  std::string where = fmt::format("tensor '{}' of '{}'", name, path);
  if (!json.is_object()) refuse("the entry is not an object", where);
  for (const auto& [key, value] : json.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets") refuse(fmt::format("unexpected key '{}'", key), where);
  Entry entry{{name, number_type(member(json, "dtype", where), where), {}}};
  std::vector<int64_t> shape = sizes(member(json, "shape", where), "shape", where);
  if (shape.size() > static_cast<size_t>(kMaxRank)) refuse(fmt::format("{} dims; at most {} are read", shape.size(), kMaxRank), where);
  entry.spec.shape = Dims(shape);
  std::vector<int64_t> offsets = sizes(member(json, "data_offsets", where), "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1]) refuse("'data_offsets' are not a begin and an end", where);
  entry.begin = offsets[0], entry.end = offsets[1];
  if (entry.end > data_bytes) refuse(fmt::format("bytes {} to {} lie outside of the file's {}", entry.begin, entry.end, data_bytes), where);
  if (int64_t bytes = tensor_bytes(entry.spec, where); bytes != entry.end - entry.begin)
    refuse(fmt::format("{} bytes for shape {} of {}, which takes {}", entry.end - entry.begin, to_string(entry.spec.shape),
                       to_string(entry.spec.type), bytes),
           where);
  return entry;
}

std::map<std::string, std::string> read_metadata(const Json& json, const std::string& where) {
  std::map<std::string, std::string> metadata;
  if (!json.is_object()) refuse("'__metadata__' is not an object", where);
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) refuse(fmt::format("'__metadata__' entry '{}' is not a string", key), where);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// The tensors' bytes follow one another and fill the file: otherwise something could hide between them.
void check_cover(const std::vector<Entry>& entries, int64_t data_bytes, const std::string& path) {
  int64_t at = 0;
  for (const Entry& entry : entries) {
    std::string where = fmt::format("tensor '{}' of '{}'", entry.spec.name, path);
    if (entry.begin < at) refuse("its bytes overlap those of another tensor", where);
    if (entry.begin > at) refuse(fmt::format("{} bytes before it belong to no tensor", entry.begin - at), where);
    at = entry.end;
  }
  if (at != data_bytes) refuse(fmt::format("{} bytes at the end belong to no tensor", data_bytes - at), fmt::format("'{}'", path));
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& text, int64_t data_bytes, const std::string& path) {
  std::string where = fmt::format("'{}'", path);
  if (!text.starts_with('{')) refuse("the header is not a JSON object", where);
  Json json = parse_strictly(text, where);
  SafetensorsHeader header;
  std::vector<Entry> entries;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata) {
      header.metadata = read_metadata(value, where);
    } else {
      entries.push_back(read_entry(name, value, data_bytes, path));
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  check_cover(entries, data_bytes, path);
  for (Entry& entry : entries) {
    header.offsets.push_back(entry.begin);
    header.tensors.push_back(std::move(entry.spec));
  }
  return header;
}

std::string safetensors_header(const std::vector<TensorSpec>& tensors, const std::map<std::string, std::string>& metadata) {
  std::string text = "{";  // entry by entry: the library's ordered object looks through all names for each one added
  std::set<std::string> names;
  int64_t at = 0;
  auto add = [&](const std::string& name, const nlohmann::ordered_json& value) {
    text += (text.size() > 1 ? "," : "") + Json(name).dump() + ":" + value.dump();
  };
  try {
    if (!metadata.empty()) add(kMetadata, metadata);
    for (const TensorSpec& spec : tensors) {
      std::string where = fmt::format("tensor '{}'", spec.name);
      if (spec.name == kMetadata) usage_error("the name is reserved by safetensors", where, "rename the variable");
      if (!names.insert(spec.name).second) usage_error("two tensors have one name", where, "rename one");
      auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& entry) { return entry.second == spec.type; });
      int64_t end = at + checked_volume(spec.shape, where) * size_of(spec.type);
      add(spec.name, {{"dtype", type->first}, {"shape", spec.shape.vector()}, {"data_offsets", {at, end}}});
      at = end;
    }
  } catch (const Json::exception&) {
    usage_error("a tensor's name or the metadata is not UTF-8", "safetensors", "rename the variable");
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  auto length = static_cast<uint64_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace espalier

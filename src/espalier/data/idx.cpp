#include "espalier/data/idx.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <vector>

#include "espalier/base/error.h"
#include "espalier/data/stream.h"

namespace espalier {
namespace {

std::optional<NumberType> number_type(unsigned char code) {
  switch (code) {
    case 0x08:
      return NumberType::kU8;
    case 0x09:
      return NumberType::kI8;
    case 0x0B:
      return NumberType::kI16;
    case 0x0C:
      return NumberType::kI32;
    case 0x0D:
      return NumberType::kF32;
    case 0x0E:
      return NumberType::kF64;
    default:
      return std::nullopt;
  }
}

// gzip is known by its first bytes; the name may say otherwise.
Coding coding_of(const ReadableFile& file) {
  std::array<unsigned char, 2> start{};
  if (file.size() >= 2) file.read_at(0, start.data(), 2);
  return start[0] == 0x1F && start[1] == 0x8B ? Coding::kGzip : Coding::kPlain;
}

bool is_part(std::string_view name, DataSplit split, IdxPart part) {
  std::string_view stem = part == IdxPart::kImages ? "-images" : "-labels";
  for (std::string_view prefix :
       split == DataSplit::kTrain ? std::vector<std::string_view>{"train"} : std::vector<std::string_view>{"t10k", "test"}) {
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = name.substr(prefix.size());
    if (rest.starts_with(stem) && (rest.substr(stem.size()).starts_with("-idx") || rest.substr(stem.size()).starts_with(".idx")))
      return true;
  }
  return false;
}

}  // namespace

Array read_idx(const FileSystem& files, const std::string& path) {
  auto file = files.open(path);
  Stream stream(*file, 0, file->size(), coding_of(*file), fmt::format("'{}'", path));
  std::array<unsigned char, 4> magic{};
  stream.read(magic.data(), 4);
  std::optional<NumberType> type = number_type(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || !type)
    usage_error(fmt::format("not an IDX file (it begins with {:02x} {:02x} {:02x} {:02x})", magic[0], magic[1], magic[2], magic[3]),
                stream.where(), "use MNIST's files or others of their format");
  if (magic[3] == 0 || magic[3] > kMaxRank)
    usage_error(fmt::format("'{}' dims; IDX files of 1 to {} are read", magic[3], kMaxRank), stream.where(), "reshape the array");
  Dims shape;
  for (int d = 0; d < magic[3]; ++d) {
    std::array<unsigned char, 4> size{};
    stream.read(size.data(), 4);
    shape.push_back(int64_t{size[0]} << 24 | int64_t{size[1]} << 16 | int64_t{size[2]} << 8 | size[3]);
  }
  int64_t volume = checked_volume(shape, stream.where());
  if (volume > stream.most_left() / size_of(*type))
    usage_error(fmt::format("the header claims shape {}, more than the file holds", to_string(shape)), stream.where(),
                "the file is incomplete; fetch it again");
  Array array = allocate_array(*type, shape, stream.where());
  stream.read(array.values.get(), array.bytes());
  stream.expect_end();
  swap_bytes(array.values.get(), volume, size_of(*type));
  return array;
}

std::string find_idx(const FileSystem& files, const std::string& directory, DataSplit split, IdxPart part) {
  std::vector<std::string> plain, packed;
  for (const std::string& name : files.list(directory))
    if (is_part(name, split, part)) (name.ends_with(".gz") ? packed : plain).push_back(name);
  const std::vector<std::string>& found = plain.empty() ? packed : plain;
  if (found.size() > 1)
    usage_error(fmt::format("two files hold the same part: '{}' and '{}'", found[0], found[1]), fmt::format("'{}'", directory),
                "remove one");
  return found.empty() ? "" : fmt::format("{}/{}", directory, found[0]);
}

}  // namespace espalier

#include "espalier/data/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "espalier/base/error.h"

namespace espalier {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEndOfDirectory = 0x06054b50;
constexpr uint32_t kEndOfDirectory64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr int64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;

[[noreturn]] void damaged(const ReadableFile& file, const std::string& why) {
  usage_error(fmt::format("not a whole .npz file ({})", why), fmt::format("'{}'", file.path()), "save it again with numpy.savez");
}

// Little endian fields of a record, checked against its end.
class Record {
 public:
  Record(const ReadableFile& file, const unsigned char* data, int64_t size) : file_(file), data_(data), left_(size) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, skip(sizeof(T)), sizeof(T));
    return value;
  }
  uint16_t u16() { return get<uint16_t>(); }
  uint32_t u32() { return get<uint32_t>(); }
  int64_t u64() {
    auto value = get<uint64_t>();
    if (value > uint64_t{1} << 62) damaged(file_, "an impossible size");
    return static_cast<int64_t>(value);
  }
  const unsigned char* skip(int64_t bytes) {
    if (bytes > left_) damaged(file_, "its directory ends early");
    const unsigned char* at = data_;
    data_ += bytes, left_ -= bytes;
    return at;
  }
  std::string text(int64_t bytes) { return std::string(reinterpret_cast<const char*>(skip(bytes)), static_cast<size_t>(bytes)); }
  int64_t left() const { return left_; }

 private:
  const ReadableFile& file_;
  const unsigned char* data_;
  int64_t left_;
};

std::vector<unsigned char> read_bytes(const ReadableFile& file, int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > file.size() - bytes) damaged(file, "a part lies outside of it");
  std::vector<unsigned char> data(static_cast<size_t>(bytes));
  file.read_at(offset, data.data(), bytes);
  return data;
}

struct Directory {
  int64_t offset = 0, bytes = 0, entries = 0;
};

Directory read_directory64(const ReadableFile& file, int64_t locator_offset) {
  auto locator_bytes = read_bytes(file, locator_offset, kLocatorBytes);
  Record locator(file, locator_bytes.data(), kLocatorBytes);
  if (locator.u32() != kLocator64) damaged(file, "its zip64 locator is missing");
  locator.u32();  // disk
  auto end_bytes = read_bytes(file, locator.u64(), kEnd64Bytes);
  Record end(file, end_bytes.data(), kEnd64Bytes);
  if (end.u32() != kEndOfDirectory64) damaged(file, "its zip64 directory is missing");
  end.skip(8 + 2 + 2 + 4 + 4 + 8);  // size, versions, disks, entries on this disk
  Directory directory;
  directory.entries = end.u64();
  directory.bytes = end.u64();
  directory.offset = end.u64();
  return directory;
}

Directory find_directory(const ReadableFile& file) {
  // The end record is followed by a comment of at most 65,535 bytes.
  int64_t bytes = std::min(file.size(), kEndBytes + 65535), begin = file.size() - bytes;
  std::vector<unsigned char> tail = read_bytes(file, begin, bytes);
  for (int64_t at = bytes - kEndBytes; at >= 0; --at) {
    Record end(file, tail.data() + at, bytes - at);
    if (end.u32() != kEndOfDirectory) continue;
    uint16_t disk = end.u16();
    end.skip(2 + 2);
    Directory directory;
    directory.entries = end.u16();
    directory.bytes = end.u32();
    directory.offset = end.u32();
    if (end.u16() > end.left()) continue;  // the signature's bytes, by chance, in a comment
    if (directory.entries == 0xFFFF || directory.bytes == 0xFFFFFFFF || directory.offset == 0xFFFFFFFF)
      return read_directory64(file, begin + at - kLocatorBytes);
    if (disk != 0) damaged(file, "it is split over several disks");
    return directory;
  }
  damaged(file, file.size() == 0 ? "it is empty" : "its directory is missing; the file may be cut off");
}

// Sizes that do not fit 32 bits stand in extra field 1, only those and in this order.
void read_zip64_sizes(const ReadableFile& file, Record extra, ZipMember& member) {
  while (extra.left() >= 4) {
    uint16_t id = extra.u16(), bytes = extra.u16();
    Record field(file, extra.skip(bytes), bytes);
    if (id != 1) continue;
    for (int64_t* value : {&member.size, &member.compressed, &member.header_offset})
      if (*value == 0xFFFFFFFF) *value = field.u64();
  }
}

ZipMember read_entry(const ReadableFile& file, Record& record) {
  ZipMember member;
  if (record.u32() != kCentralHeader) damaged(file, "its directory is damaged");
  record.skip(2 + 2);  // versions
  uint16_t flags = record.u16(), method = record.u16();
  record.skip(4);  // time and date
  member.crc = record.u32();
  member.compressed = record.u32();
  member.size = record.u32();
  uint16_t name = record.u16(), extra = record.u16(), comment = record.u16();
  record.skip(2 + 2 + 4);  // disk, attributes
  member.header_offset = record.u32();
  member.name = record.text(name);
  read_zip64_sizes(file, Record(file, record.skip(extra), extra), member);
  record.skip(comment);
  std::string where = fmt::format("'{}' of '{}'", member.name, file.path());
  if (flags & 1) usage_error("the member is encrypted", where, "save it again with numpy.savez");
  if (method != 0 && method != 8)
    usage_error(fmt::format("compression '{}' is not known; known: stored, deflated", method), where, "save it again with numpy.savez");
  member.coding = method == 0 ? Coding::kPlain : Coding::kDeflate;
  if (method == 0 && member.compressed != member.size) damaged(file, fmt::format("'{}' has two sizes", member.name));
  if (member.header_offset > file.size() - kLocalBytes || member.compressed > file.size() - kLocalBytes - member.header_offset)
    damaged(file, fmt::format("'{}' lies outside of it", member.name));
  return member;
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const ReadableFile& file) {
  Directory directory = find_directory(file);
  std::vector<unsigned char> bytes = read_bytes(file, directory.offset, directory.bytes);
  if (directory.entries > directory.bytes / kCentralBytes) damaged(file, "its directory is too short");
  Record record(file, bytes.data(), directory.bytes);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (int64_t i = 0; i < directory.entries; ++i) {
    members.push_back(read_entry(file, record));
    if (!names.insert(members.back().name).second) damaged(file, fmt::format("it holds '{}' twice", members.back().name));
  }
  return members;
}

std::unique_ptr<Stream> open_member(const ReadableFile& file, const ZipMember& member, const std::string& where) {
  auto bytes = read_bytes(file, member.header_offset, kLocalBytes);
  Record header(file, bytes.data(), kLocalBytes);
  if (header.u32() != kLocalHeader) damaged(file, fmt::format("the header of '{}' is damaged", member.name));
  header.skip(22);  // flags to sizes: the directory has them, and only it knows them when the writer could not seek
  int64_t begin = member.header_offset + kLocalBytes;
  begin += header.u16();  // name
  begin += header.u16();  // extra fields
  if (member.compressed > file.size() - begin) damaged(file, fmt::format("'{}' lies outside of it", member.name));
  return std::make_unique<Stream>(file, begin, member.compressed, member.coding, where);
}

}  // namespace espalier

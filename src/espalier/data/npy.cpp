#include "espalier/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "espalier/base/nearest.h"
#include "espalier/base/runs.h"
#include "espalier/base/text.h"

namespace espalier {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxHeader = 1 << 20;  // a real one has some hundred bytes; only structured dtypes, which we refuse, have more

struct Header {
  std::string dtype;
  bool fortran = false;
  Dims shape;
};

// Reads the dict that numpy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : left_(text), where_(where) {}

  Header parse() {
    Header header;
    bool dtype = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr" && !dtype) {
        header.dtype = dtype_string(), dtype = true;
      } else if (key == "fortran_order" && !order) {
        header.fortran = boolean(), order = true;
      } else if (key == "shape" && !shape) {
        header.shape = dims(), shape = true;
      } else {
        fail(fmt::format("unexpected key '{}'", key));
      }
      if (!accept(',') && peek() != '}') fail("no ',' between entries");
    }
    if (!dtype || !order || !shape) fail("an entry is missing");
    if (peek() != '\0') fail("text follows the dict");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& why) {
    usage_error(fmt::format("the .npy header is damaged ({})", why), where_, "save the array again with numpy");
  }
  char peek() {
    while (!left_.empty() && (left_.front() == ' ' || left_.front() == '\n')) left_.remove_prefix(1);
    return left_.empty() ? '\0' : left_.front();
  }
  bool accept(char c) {
    if (peek() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' expected", c));
  }
  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') fail("a quoted word expected");
    size_t end = left_.find(quote, 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    std::string word(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return word;
  }
  std::string dtype_string() {
    if (peek() == '[') usage_error("the array has fields (a structured dtype)", where_, "save one array of plain numbers a name");
    return string();
  }
  bool boolean() {
    peek();
    for (bool value : {false, true}) {
      std::string_view word = value ? "True" : "False";
      if (!left_.starts_with(word)) continue;
      left_.remove_prefix(word.size());
      return value;
    }
    fail("True or False expected");
  }
  Dims dims() {
    Dims shape;
    expect('(');
    while (!accept(')')) {
      if (shape.rank() == kMaxRank) usage_error(fmt::format("more than {} dims", kMaxRank), where_, "reshape the array");
      peek();
      int64_t size = 0;
      auto [end, status] = std::from_chars(left_.data(), left_.data() + left_.size(), size);
      if (status != std::errc() || size < 0) fail("a size expected");
      left_.remove_prefix(static_cast<size_t>(end - left_.data()));
      accept('L');  // Python 2's long integers
      shape.push_back(size);
      if (!accept(',') && peek() != ')') fail("no ',' between sizes");
    }
    return shape;
  }

  std::string_view left_;
  const std::string& where_;
};

struct Format {
  NumberType type;
  bool big_endian;
};

Format parse_dtype(const std::string& dtype, const std::string& where) {
  if (dtype.find('O') != std::string::npos)
    usage_error(fmt::format("the array holds Python objects (dtype '{}'), which only pickle reads, and pickle executes code", dtype), where,
                "save an array of numbers");
  char order = dtype.empty() ? '\0' : dtype[0];
  if (order == '<' || order == '>' || order == '|' || order == '=') {
    static constexpr std::pair<const char*, NumberType> kTypes[] = {
        {"b1", NumberType::kBool}, {"i1", NumberType::kI8},  {"u1", NumberType::kU8},  {"i2", NumberType::kI16},
        {"u2", NumberType::kU16},  {"i4", NumberType::kI32}, {"u4", NumberType::kU32}, {"i8", NumberType::kI64},
        {"u8", NumberType::kU64},  {"f2", NumberType::kF16}, {"f4", NumberType::kF32}, {"f8", NumberType::kF64}};
    for (const auto& [name, type] : kTypes)
      if (dtype.substr(1) == name) return {type, order == '>'};
  }
  usage_error(fmt::format("dtype '{}' is not a number we read; read are bool, int8 to int64, uint8 to uint64, float16 to float64", dtype),
              where, "convert it with .astype('float32')");
}

Header read_header(Stream& stream) {
  char start[8];
  stream.read(start, sizeof start);
  if (std::string_view(start, kMagic.size()) != kMagic)
    usage_error("not an array of numpy's (.npy)", stream.where(), "save it with numpy.save or numpy.savez");
  int version = start[6];
  if (version < 1 || version > 3)
    usage_error(fmt::format("version '{}' of .npy is not known; known: 1, 2, 3", version), stream.where(), "save it with numpy.save");
  uint32_t length = 0;
  stream.read(&length, version == 1 ? 2 : 4);
  if (length > kMaxHeader || length > stream.most_left())
    usage_error(fmt::format("the .npy header claims {}", format_bytes(length)), stream.where(), "save the array again with numpy");
  std::string text(length, '\0');
  stream.read(text.data(), length);
  return HeaderParser(text, stream.where()).parse();
}

// Rearranges numbers from Fortran order (first dim fastest) to C order.
void to_c_order(const std::byte* from, Array& array) {
  const Dims& shape = array.shape;
  auto size = static_cast<size_t>(size_of(array.type));
  Dims strides(shape.rank(), 1), at(shape.rank(), 0);
  for (int d = 1; d < shape.rank(); ++d) strides[d] = strides[d - 1] * shape[d - 1];
  int64_t source = 0, volume = shape.volume();
  for (int64_t i = 0; i < volume; ++i) {
    std::memcpy(array.values.get() + static_cast<size_t>(i) * size, from + static_cast<size_t>(source) * size, size);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      source += strides[d];
      if (++at[d] < shape[d]) break;
      source -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
}

std::string npy_header(const Dims& shape) {
  std::string dict = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", to_string(shape));
  constexpr size_t kFixed = 10, kAlign = 64;  // magic, version, length; the numbers begin at a multiple of 64
  dict.resize((kFixed + dict.size() + 1 + kAlign - 1) / kAlign * kAlign - kFixed, ' ');
  dict.back() = '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

}  // namespace

Array read_npy(Stream& stream) {
  Header header = read_header(stream);
  Format format = parse_dtype(header.dtype, stream.where());
  int64_t volume = checked_volume(header.shape, stream.where());
  if (volume > stream.most_left() / size_of(format.type))
    usage_error(fmt::format("the header claims shape {}, more than the file holds", to_string(header.shape)), stream.where(),
                "the file is incomplete or damaged; save it again");
  Array array = allocate_array(format.type, header.shape, stream.where());
  stream.read(array.values.get(), array.bytes());
  stream.expect_end();
  if (format.big_endian) swap_bytes(array.values.get(), volume, size_of(format.type));
  if (header.fortran && header.shape.rank() > 1) {
    Array columns = array;
    array = allocate_array(format.type, header.shape, stream.where());
    to_c_order(columns.values.get(), array);
  }
  return array;
}

NpzReader::NpzReader(const FileSystem& files, const std::string& path) : file_(files.open(path)), arrays_(read_zip_directory(*file_)) {
  std::erase_if(arrays_, [](const ZipMember& member) { return !member.name.ends_with(".npy"); });
  if (arrays_.empty()) usage_error("no arrays in the file", fmt::format("'{}'", path), "save it with numpy.savez(file, x=x, y=y)");
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const ZipMember& member : arrays_) names.push_back(member.name.substr(0, member.name.size() - 4));
  return names;
}

const ZipMember* NpzReader::find(const std::string& name) const {
  auto found = std::find_if(arrays_.begin(), arrays_.end(), [&](const ZipMember& member) { return member.name == name + ".npy"; });
  return found == arrays_.end() ? nullptr : &*found;
}

std::string NpzReader::where(const std::string& name) const { return fmt::format("array '{}' of '{}'", name, file_->path()); }

Array NpzReader::read(const std::string& name) const {
  const ZipMember* member = find(name);
  if (member == nullptr) usage_error(fmt::format("no array '{}'", name), fmt::format("'{}'", file_->path()), suggest(name, names()));
  auto stream = open_member(*file_, *member, where(name));
  Array array = read_npy(*stream);
  if (stream->crc() != member->crc) usage_error("the checksum does not hold", where(name), "the file is damaged; fetch or save it again");
  return array;
}

NpyWriter::NpyWriter(const FileSystem& files, const std::string& path, const Dims& shape) : file_(files, path), shape_(shape) {
  std::string header = npy_header(shape);
  file_.write_at(0, header.data(), static_cast<int64_t>(header.size()));
  begin_ = static_cast<int64_t>(header.size());
}

void NpyWriter::write(const Dims& offset, const Dims& shape, const float* values) {
  constexpr int64_t kSize = sizeof(float);
  for_each_run(shape_, offset, shape, [&](int64_t at_whole, int64_t at_part, int64_t count) {
    file_.write_at(begin_ + at_whole * kSize, values + at_part, count * kSize);
  });
  written_ += shape.volume();
}

void NpyWriter::write_rows(int64_t first, int64_t count, const float* values) {
  Dims offset(shape_.rank(), 0), shape = shape_;
  offset[0] = first, shape[0] = count;
  write(offset, shape, values);
}

void NpyWriter::commit() {
  ESPALIER_ASSERT(written_ == shape_.volume());
  file_.commit();
}

}  // namespace espalier

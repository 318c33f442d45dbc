#include "espalier/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <type_traits>

#include "espalier/base/nearest.h"
#include "espalier/base/runs.h"
#include "espalier/base/text.h"
#include "espalier/checkpoint/safetensors_header.h"

namespace espalier {
namespace {

constexpr int64_t kStagingBytes = 1 << 20;  // read at once when a part is converted or lies in strips: fits the second cache
constexpr int64_t kMaxGap = 16 << 10;       // strips closer than this are read with what lies between them: a call costs more

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& todo) {
  throw Error(ErrorKind::kWeights, what, where, todo);
}

std::string where_of(const std::string& name, const std::string& path) { return fmt::format("tensor '{}' of '{}'", name, path); }

std::unique_ptr<ReadableFile> open_weights(const FileSystem& files, const std::string& path) {
  switch (files.kind(path)) {
    case FileKind::kRegular:
      return files.open(path);
    case FileKind::kMissing:
      refuse("no weights file", fmt::format("'{}'", path), "check the path");
    default:
      refuse("not a weights file but a directory, pipe or device", fmt::format("'{}'", path), "name a .safetensors file");
  }
}

std::string read_header_text(const ReadableFile& file) {
  std::string where = fmt::format("'{}'", file.path()), todo = "the file is cut off or not safetensors";
  uint64_t length = 0;
  if (file.size() < static_cast<int64_t>(sizeof length))
    refuse(fmt::format("{} bytes are too few for a safetensors file", file.size()), where, todo);
  file.read_at(0, &length, sizeof length);
  if (length > kMaxSafetensorsHeader)
    refuse(fmt::format("the header claims {} bytes, more than the format's {}", length, kMaxSafetensorsHeader), where, todo);
  if (static_cast<int64_t>(length) > file.size() - static_cast<int64_t>(sizeof length))
    refuse(fmt::format("the header claims {} bytes, more than the file has", length), where, todo);
  std::string text(length, '\0');
  file.read_at(sizeof length, text.data(), static_cast<int64_t>(length));
  return text;
}

bool is_within(const Box& box, const Dims& shape) {
  if (box.offset.rank() != shape.rank() || box.shape.rank() != shape.rank()) return false;
  for (int d = 0; d < shape.rank(); ++d)
    if (box.offset[d] < 0 || box.shape[d] < 0 || box.offset[d] > shape[d] - box.shape[d]) return false;
  return true;
}

bool holds_more_than_i32(NumberType type) { return type == NumberType::kU32 || type == NumberType::kI64 || type == NumberType::kU64; }

void check_fits_i32(NumberType type, const void* from, int64_t count, const std::string& where) {
  std::vector<double> values(static_cast<size_t>(count));
  convert(type, from, count, values.data());
  for (double value : values)
    if (value < -0x1p31 || value >= 0x1p31) refuse(fmt::format("value '{}' does not fit 32 bits", value), where, "check the file");
}

// Reads a box of one tensor, run by run. Neighbouring runs share a read of up to kStagingBytes, whose gaps are thrown away; long runs of
// the caller's own type go straight to the caller's buffer.
template <class T>
class RunReader {
 public:
  RunReader(const ReadableFile& file, int64_t base, NumberType type, std::string where, T* out)
      : file_(file), base_(base), type_(type), size_(size_of(type)), where_(std::move(where)), out_(out) {}

  void read(const Dims& tensor, const Box& box) {
    for_each_run(tensor, box.offset, box.shape, [&](int64_t at_file, int64_t at_out, int64_t count) { add(at_file, at_out, count); });
    flush();
  }

 private:
  struct Piece {
    int64_t at_file, at_out, count;
  };
  bool is_direct() const { return type_ == (std::is_same_v<T, float> ? NumberType::kF32 : NumberType::kI32); }

  void add(int64_t at_file, int64_t at_out, int64_t count) {
    if (is_direct() && count * size_ > kMaxGap) {
      flush();
      file_.read_at(base_ + at_file * size_, out_ + at_out, count * size_);
      return;
    }
    while (count > 0) {
      if (!runs_.empty() && ((at_file - end_) * size_ > kMaxGap || (at_file + 1 - begin_) * size_ > kStagingBytes)) flush();
      if (runs_.empty()) begin_ = at_file;
      int64_t fits = std::min(count, kStagingBytes / size_ - (at_file - begin_));
      runs_.push_back({at_file, at_out, fits});
      end_ = at_file + fits;
      at_file += fits, at_out += fits, count -= fits;
    }
  }

  void flush() {
    if (runs_.empty()) return;
    staging_.resize(static_cast<size_t>((end_ - begin_) * size_));
    file_.read_at(base_ + begin_ * size_, staging_.data(), static_cast<int64_t>(staging_.size()));
    for (const Piece& run : runs_) {
      const unsigned char* from = staging_.data() + (run.at_file - begin_) * size_;
      if (std::is_same_v<T, int32_t> && holds_more_than_i32(type_)) check_fits_i32(type_, from, run.count, where_);
      convert(type_, from, run.count, out_ + run.at_out);
    }
    runs_.clear();
  }

  const ReadableFile& file_;
  int64_t base_;
  NumberType type_;
  int64_t size_;
  std::string where_;
  T* out_;
  int64_t begin_ = 0, end_ = 0;  // elements of the tensor that the pending runs span
  std::vector<Piece> runs_;
  std::vector<unsigned char> staging_;
};

std::string and_more(size_t count) { return count > 1 ? fmt::format(" (and {} more)", count - 1) : ""; }

}  // namespace

SafetensorsReader::SafetensorsReader(const FileSystem& files, const std::string& path) : file_(open_weights(files, path)) {
  std::string text = read_header_text(*file_);
  int64_t data_begin = static_cast<int64_t>(sizeof(uint64_t) + text.size());
  SafetensorsHeader header = parse_safetensors_header(text, file_->size() - data_begin, path);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    index_[tensors_[i].name] = i;
    offsets_.push_back(data_begin + header.offsets[i]);
  }
}

const TensorSpec* SafetensorsReader::find(const std::string& name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

size_t SafetensorsReader::index_of(const std::string& name, const Box& box) const {
  auto found = index_.find(name);
  if (found == index_.end()) {
    std::vector<std::string> names;
    for (const TensorSpec& tensor : tensors_) names.push_back(tensor.name);
    refuse(fmt::format("no tensor '{}'", name), fmt::format("'{}'", path()), suggest(name, names));
  }
  const Dims& shape = tensors_[found->second].shape;
  if (!is_within(box, shape))
    refuse(fmt::format("a part at {} of shape {} is not within shape {}", to_string(box.offset), to_string(box.shape), to_string(shape)),
           where_of(name, path()), "check the model against the file");
  return found->second;
}

template <class T>
void SafetensorsReader::read_as(size_t index, const Box& box, T* out) const {
  const TensorSpec& tensor = tensors_[index];
  RunReader<T>(*file_, offsets_[index], tensor.type, where_of(tensor.name, path()), out).read(tensor.shape, box);
}

void SafetensorsReader::read(const std::string& name, const Box& box, float* out) const { read_as(index_of(name, box), box, out); }

void SafetensorsReader::read(const std::string& name, const Box& box, int32_t* out) const {
  size_t index = index_of(name, box);
  if (NumberType type = tensors_[index].type; !is_integer(type))
    refuse(fmt::format("numbers of type {} where integers are needed", to_string(type)), where_of(name, path()),
           "check the model against the file");
  read_as(index, box, out);
}

void SafetensorsReader::check_names(const std::vector<TensorSpec>& expected) const {
  std::set<std::string> wanted;
  std::vector<std::string> missing, unexpected, unclaimed;
  const TensorSpec* misshapen = nullptr;
  size_t misshapen_count = 0;
  for (const TensorSpec& spec : expected) {
    wanted.insert(spec.name);
    const TensorSpec* found = find(spec.name);
    if (found == nullptr) missing.push_back(spec.name);
    if (found != nullptr && found->shape != spec.shape && misshapen_count++ == 0) misshapen = &spec;
  }
  for (const TensorSpec& tensor : tensors_)
    if (!wanted.contains(tensor.name)) unexpected.push_back(tensor.name);
  std::string where = fmt::format("'{}'", path());
  if (!missing.empty())
    refuse(fmt::format("no tensor for the model's variable '{}'{}", missing[0], and_more(missing.size())), where,
           unexpected.empty() ? "the file is of another model" : suggest(missing[0], unexpected));
  if (!unexpected.empty())
    refuse(
        fmt::format("tensor '{}'{} is no variable of the model, which has {}", unexpected[0], and_more(unexpected.size()), expected.size()),
        where, "the file is of another model");
  if (misshapen != nullptr)
    refuse(fmt::format("shape {} where the model's variable has {}{}", to_string(find(misshapen->name)->shape), to_string(misshapen->shape),
                       and_more(misshapen_count)),
           where_of(misshapen->name, path()), "the file is of another model");
}

SafetensorsWriter::SafetensorsWriter(const FileSystem& files, const std::string& path, const std::vector<TensorSpec>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(files, path) {
  std::string header = safetensors_header(tensors, metadata);
  file_.write_at(0, header.data(), static_cast<int64_t>(header.size()));
  int64_t at = static_cast<int64_t>(header.size());
  for (const TensorSpec& spec : tensors) {
    tensors_[spec.name] = {spec, at};
    at += spec.shape.volume() * size_of(spec.type);
  }
  total_ = at - static_cast<int64_t>(header.size());
}

void SafetensorsWriter::write_bytes(const std::string& name, const Box& box, const void* values, NumberType type) {
  auto found = tensors_.find(name);
  ESPALIER_ASSERT(found != tensors_.end() && found->second.spec.type == type && is_within(box, found->second.spec.shape));
  int64_t size = size_of(type);
  for_each_run(found->second.spec.shape, box.offset, box.shape, [&](int64_t at_file, int64_t at_box, int64_t count) {
    file_.write_at(found->second.offset + at_file * size, static_cast<const char*>(values) + at_box * size, count * size);
  });
  written_ += box.shape.volume() * size;
}

void SafetensorsWriter::commit() {
  ESPALIER_ASSERT(written_ == total_);
  file_.commit();
}

}  // namespace espalier

#pragma once
// Weights in safetensors files (https://github.com/huggingface/safetensors, "Format"): 8 bytes of header length, a JSON header
// {name: {dtype, shape, data_offsets}}, then the numbers. Read and written part by part: no device or host ever holds a tensor whole that
// it does not own. Nothing in the file executes.
//
// Threads: both classes may be used by several threads at once, `commit` by one after the others.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/file.h"
#include "espalier/base/number.h"
#include "espalier/mesh/sharding.h"

namespace espalier {

struct TensorSpec {
  std::string name;
  NumberType type = NumberType::kF32;
  Dims shape;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

class SafetensorsReader {
 public:
  // Checks the whole header. Errors (kWeights) name file and tensor: no such file, a header longer than the file or 100 MB, JSON that is
  // not the format's, a name twice, an unknown dtype, more than 8 dims, offsets outside the file, of the wrong length, overlapping or
  // with gaps.
  SafetensorsReader(const FileSystem& files, const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::vector<TensorSpec>& tensors() const { return tensors_; }  // in the order of their bytes
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorSpec* find(const std::string& name) const;

  // The part `box` of a tensor, row-major, as floats (16-bit, 64-bit and integer types are converted) or as 32-bit integers.
  // Errors: no such tensor, a box outside of its shape, for integers a float tensor or a value beyond 32 bits (kWeights); kStorage.
  void read(const std::string& name, const Box& box, float* out) const;
  void read(const std::string& name, const Box& box, int32_t* out) const;

  // Errors (kWeights) unless the file holds exactly the expected names and shapes: the first tensor that is missing (with the nearest
  // name in the file), unexpected, or of another shape, and how many more. Types are free, as they are converted.
  void check_names(const std::vector<TensorSpec>& expected) const;

 private:
  size_t index_of(const std::string& name, const Box& box) const;
  template <class T>
  void read_as(size_t index, const Box& box, T* out) const;

  std::unique_ptr<ReadableFile> file_;
  std::vector<TensorSpec> tensors_;
  std::vector<int64_t> offsets_;  // in the file, of tensors_
  std::map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

class SafetensorsWriter {
 public:
  // Writes the header. The file appears at `commit`, whole or not at all; an earlier file of that name stays until then.
  // Errors: a name twice, "__metadata__" or not UTF-8 (kUsage); what AtomicFile refuses (kStorage).
  SafetensorsWriter(const FileSystem& files, const std::string& path, const std::vector<TensorSpec>& tensors,
                    const std::map<std::string, std::string>& metadata = {});

  // The part `box` of a tensor, row-major, in any order and from any thread; each element is written by exactly one call. The C++ type
  // is the tensor's type: kF32, kI32, kI64.
  void write(const std::string& name, const Box& box, const float* values) { write_bytes(name, box, values, NumberType::kF32); }
  void write(const std::string& name, const Box& box, const int32_t* values) { write_bytes(name, box, values, NumberType::kI32); }
  void write(const std::string& name, const Box& box, const int64_t* values) { write_bytes(name, box, values, NumberType::kI64); }
  void commit();  // every element has been written

 private:
  struct Placed {
    TensorSpec spec;
    int64_t offset;
  };
  void write_bytes(const std::string& name, const Box& box, const void* values, NumberType type);

  AtomicFile file_;
  std::map<std::string, Placed> tensors_;
  int64_t total_ = 0;                 // bytes of all tensors
  std::atomic<int64_t> written_ = 0;  // of them
};

}  // namespace espalier

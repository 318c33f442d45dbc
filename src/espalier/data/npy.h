#pragma once
// numpy's files: .npy (format 1, 2 and 3) and .npz, a zip of them. Reads numbers of any byte order, in C or Fortran order. Refuses, by
// name, arrays of Python objects: reading a pickle executes what it says, and nothing that executes is ever read from a file.
// Source: numpy.lib.format.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/file.h"
#include "espalier/data/array.h"
#include "espalier/data/stream.h"
#include "espalier/data/zip.h"

namespace espalier {

// The array whose .npy bytes the stream yields, to its end; the result is in C order. Errors (kUsage) name stream.where(): not .npy, a
// dtype that is not a number, more than 8 dims, a shape that claims more than the stream can hold, a stream too short or too long.
Array read_npy(Stream& stream);

// The arrays of an .npz, by name.
class NpzReader {
 public:
  NpzReader(const FileSystem& files, const std::string& path);
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  std::string where(const std::string& name) const;  // "array 'x' of 'data.npz'"
  // Errors (kUsage): no such array (with the nearest name), as read_npy, or a checksum that does not hold.
  Array read(const std::string& name) const;

 private:
  const ZipMember* find(const std::string& name) const;

  std::unique_ptr<ReadableFile> file_;
  std::vector<ZipMember> arrays_;
};

// A float32 .npy file written part by part, in any order and from any threads; it appears when committed, whole or not at all.
class NpyWriter {
 public:
  NpyWriter(const FileSystem& files, const std::string& path, const Dims& shape);
  // The part at `offset` of `shape`, row-major. Each element is written once.
  void write(const Dims& offset, const Dims& shape, const float* values);
  void write_rows(int64_t first, int64_t count, const float* values);  // entries of the first dim
  void commit();                                                       // every element has been written

 private:
  AtomicFile file_;
  Dims shape_;
  int64_t begin_ = 0;  // of the numbers in the file
  std::atomic<int64_t> written_ = 0;
};

}  // namespace espalier

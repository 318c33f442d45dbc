#pragma once
// A file system with one file, in memory: readers of files meet any bytes without a disk. Nothing can be written.
#include <memory>
#include <string>

#include "espalier/base/error.h"
#include "espalier/base/file.h"
#include "fuzz.h"

namespace espalier::fuzz {

class HeldFile : public FileSystem {
 public:
  explicit HeldFile(std::string content) : content_(std::move(content)) {}

  FileKind kind(const std::string&) const override { return FileKind::kRegular; }
  std::string resolve(const std::string& path) const override { return path; }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  std::unique_ptr<ReadableFile> open(const std::string& path) const override { return std::make_unique<Reader>(path, content_); }
  std::string read_all(const std::string&, int64_t) const override { return content_; }
  std::unique_ptr<WritableFile> create(const std::string& path) const override { refuse(path); }
  void rename(const std::string& from, const std::string&) const override { refuse(from); }
  void remove(const std::string& path) const override { refuse(path); }
  void sync_directory(const std::string& path) const override { refuse(path); }

 private:
  class Reader : public ReadableFile {
   public:
    Reader(std::string path, const std::string& content) : path_(std::move(path)), content_(content) {}
    const std::string& path() const override { return path_; }
    int64_t size() const override { return static_cast<int64_t>(content_.size()); }
    void read_at(int64_t offset, void* to, int64_t bytes) const override {
      require(offset >= 0 && bytes >= 0 && offset <= size() - bytes, "a read outside of the file");
      content_.copy(static_cast<char*>(to), static_cast<size_t>(bytes), static_cast<size_t>(offset));
    }

   private:
    std::string path_;
    const std::string& content_;
  };
  [[noreturn]] static void refuse(const std::string& path) { throw Error(ErrorKind::kStorage, "nothing can be written", path); }

  std::string content_;
};

}  // namespace espalier::fuzz

#pragma once
// A file system that fails when told: the nth call of one kind, or every write past a capacity, as on a full disk. Everything else goes
// to the files of this machine. Also counts calls and bytes, so that tests can see how a file was read.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "espalier/base/file.h"

namespace espalier {

enum class FileCall { kOpen, kRead, kCreate, kWrite, kSync, kClose, kRename, kRemove, kSyncDirectory, kCount };

class FaultyFileSystem : public FileSystem {
 public:
  // The nth call (from 1) of this kind from now on fails with `error_number`; a write puts half of its bytes first.
  void fail(FileCall call, int nth, int error_number) { state_->failing = call, state_->left = nth, state_->error_number = error_number; }
  // Writes that go past `bytes` in total fail with ENOSPC, after filling what is left.
  void set_capacity(int64_t bytes) { state_->capacity = bytes; }
  void hide(const std::string& prefix) { hidden_ = prefix; }  // paths that begin so are missing

  // A file that stands in memory only, for the thousands of damaged files that a test makes.
  void hold(const std::string& path, const std::string& content) { held_path_ = path, held_ = content; }

  int64_t calls(FileCall call) const { return state_->calls[static_cast<size_t>(call)]; }
  int64_t bytes_read() const { return state_->bytes_read; }

  FileKind kind(const std::string& path) const override {
    if (path == held_path_) return FileKind::kRegular;
    return !hidden_.empty() && path.starts_with(hidden_) ? FileKind::kMissing : local_files().kind(path);
  }
  std::string resolve(const std::string& path) const override { return local_files().resolve(path); }
  std::vector<std::string> list(const std::string& path) const override { return local_files().list(path); }
  std::unique_ptr<ReadableFile> open(const std::string& path) const override {
    state_->count(FileCall::kOpen, "open", path);
    if (path == held_path_) return std::make_unique<Held>(path, held_);
    return std::make_unique<Readable>(state_, local_files().open(path));
  }
  std::string read_all(const std::string& path, int64_t limit) const override {
    state_->count(FileCall::kRead, "read", path);
    return local_files().read_all(path, limit);
  }
  std::unique_ptr<WritableFile> create(const std::string& path) const override {
    state_->count(FileCall::kCreate, "create a file", path);
    auto file = local_files().create(path);
    return file ? std::make_unique<Writable>(state_, std::move(file), path) : nullptr;
  }
  void rename(const std::string& from, const std::string& to) const override {
    state_->count(FileCall::kRename, "put the new file in place", to);
    local_files().rename(from, to);
  }
  void remove(const std::string& path) const override {
    state_->count(FileCall::kRemove, "remove", path);
    local_files().remove(path);
  }
  void sync_directory(const std::string& path) const override {
    state_->count(FileCall::kSyncDirectory, "write", path);
    local_files().sync_directory(path);
  }

 private:
  struct State {
    FileCall failing = FileCall::kCount;
    int left = 0, error_number = 0;
    int64_t capacity = std::numeric_limits<int64_t>::max();
    std::atomic<int64_t> calls[static_cast<size_t>(FileCall::kCount)] = {};
    std::atomic<int64_t> bytes_read = 0;

    bool due(FileCall call) {
      ++calls[static_cast<size_t>(call)];
      return call == failing && --left == 0;
    }
    void count(FileCall call, const char* action, const std::string& path) {
      if (due(call)) storage_error(action, path, error_number);
    }
  };

  class Readable : public ReadableFile {
   public:
    Readable(std::shared_ptr<State> state, std::unique_ptr<ReadableFile> file) : state_(std::move(state)), file_(std::move(file)) {}
    const std::string& path() const override { return file_->path(); }
    int64_t size() const override { return file_->size(); }
    void read_at(int64_t offset, void* to, int64_t bytes) const override {
      state_->count(FileCall::kRead, "read", path());
      state_->bytes_read += bytes;
      file_->read_at(offset, to, bytes);
    }

   private:
    std::shared_ptr<State> state_;
    std::unique_ptr<ReadableFile> file_;
  };

  class Held : public ReadableFile {
   public:
    Held(std::string path, std::string content) : path_(std::move(path)), content_(std::move(content)) {}
    const std::string& path() const override { return path_; }
    int64_t size() const override { return static_cast<int64_t>(content_.size()); }
    void read_at(int64_t offset, void* to, int64_t bytes) const override {
      if (offset < 0 || bytes < 0 || offset > size() - bytes) throw std::logic_error("a read outside of the file");
      content_.copy(static_cast<char*>(to), static_cast<size_t>(bytes), static_cast<size_t>(offset));
    }

   private:
    std::string path_, content_;
  };

  class Writable : public WritableFile {
   public:
    Writable(std::shared_ptr<State> state, std::unique_ptr<WritableFile> file, std::string path)
        : state_(std::move(state)), file_(std::move(file)), path_(std::move(path)) {}
    void write_at(int64_t offset, const void* from, int64_t bytes) override {
      if (state_->due(FileCall::kWrite)) {
        file_->write_at(offset, from, bytes / 2);
        storage_error("write", path_, state_->error_number);
      }
      int64_t fits = std::min(bytes, state_->capacity);
      file_->write_at(offset, from, fits);
      state_->capacity -= fits;
      if (fits < bytes) storage_error("write", path_, ENOSPC);
    }
    void sync() override {
      state_->count(FileCall::kSync, "write", path_);
      file_->sync();
    }
    void close() override {
      state_->count(FileCall::kClose, "write", path_);
      file_->close();
    }

   private:
    std::shared_ptr<State> state_;
    std::unique_ptr<WritableFile> file_;
    std::string path_;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::string hidden_, held_path_, held_;
};

}  // namespace espalier

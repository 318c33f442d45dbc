#pragma once
// The file layer. Everything that reads or writes a file does so through a `FileSystem`, so that a test can tell it to fail: a full disk,
// a short read, a rename that is refused. Failures of the system are Error(kStorage) naming the file, the system's words and what to do.
// Not here: whether a missing file is the user's mistake (kUsage, kWeights); the caller knows, and asks `kind` first.
//
// Threads: every object may be used by several threads at once; reads and writes carry their own position.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

enum class FileKind { kMissing, kRegular, kDirectory, kOther };  // links are followed; kOther: a pipe, a terminal, a device

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual const std::string& path() const = 0;
  virtual int64_t size() const = 0;  // when it was opened
  // Exactly `bytes` bytes from `offset`; an Error when the file ends before.
  virtual void read_at(int64_t offset, void* to, int64_t bytes) const = 0;
};

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes; what was not synced may be lost
  virtual void write_at(int64_t offset, const void* from, int64_t bytes) = 0;
  virtual void sync() = 0;  // returns when the bytes are on the device
  virtual void close() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual FileKind kind(const std::string& path) const = 0;
  virtual std::string resolve(const std::string& path) const = 0;                 // the path behind links; `path` itself when missing
  virtual std::vector<std::string> list(const std::string& path) const = 0;       // names in a directory, sorted
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) const = 0;  // a regular file
  // The whole content, of a pipe too. An Error (kUsage) when it is longer than `limit` bytes.
  virtual std::string read_all(const std::string& path, int64_t limit) const = 0;
  // A new file; null when something of that name exists. Where the system can, it has no name until it is closed, so that a process that
  // is killed leaves nothing.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) const = 0;
  virtual void rename(const std::string& from, const std::string& to) const = 0;  // replaces `to` in one step
  virtual void remove(const std::string& path) const = 0;
  virtual void sync_directory(const std::string& path) const = 0;  // makes a rename inside it durable
};

// The files of this machine (POSIX).
const FileSystem& local_files();

// Throws Error(kStorage): "cannot ACTION (SYSTEM'S WORDS): 'PATH'; HINT", the hint by the system's error number.
[[noreturn]] void storage_error(const std::string& action, const std::string& path, int error_number);

// A file that appears whole or not at all. It is written beside its target under another name, and `commit` syncs and renames it; without
// a commit it is removed. The target keeps its old content until that one rename, whatever fails before. When the target is a link, the
// file behind it is replaced. Refuses (kStorage) a directory, a pipe or a device as target. If only the directory's sync fails, `commit`
// throws although the new file stands in place, complete.
class AtomicFile {
 public:
  AtomicFile(const FileSystem& files, const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write_at(int64_t offset, const void* from, int64_t bytes);
  void commit();

 private:
  template <class Action>
  void naming_target(Action action);

  const FileSystem& files_;
  std::string target_, directory_, temporary_;
  std::unique_ptr<WritableFile> file_;
};

// Replaces the file's content, atomically.
void write_file(const FileSystem& files, const std::string& path, std::string_view content);
// Throws what a later AtomicFile at `path` would throw: asked before hours of training, not after. Leaves nothing behind.
void check_writable(const FileSystem& files, const std::string& path);

}  // namespace espalier

#include "espalier/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "espalier/base/error.h"
#include "espalier/base/text.h"

namespace espalier {
namespace {

constexpr int64_t kMaxTransfer = int64_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB a call

const char* hint(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space there, or choose another place; an earlier file of that name is unchanged";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and its directory";
    case ENOENT:
    case ENOTDIR:
      return "check the path; directories are not created";
    case EROFS:
      return "choose a place that can be written";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case EISDIR:
      return "name a file, not a directory";
    case ENAMETOOLONG:
      return "choose a shorter name";
    default:
      return "check the disk and the path";
  }
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_again(const std::string& path, int flags) {
  int fd;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (fd < 0 && errno == EINTR);
  return fd;
}

class PosixReadable : public ReadableFile {
 public:
  PosixReadable(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) storage_error("read", path_, errno);
    if (S_ISDIR(status.st_mode)) storage_error("read", path_, EISDIR);
    if (!S_ISREG(status.st_mode))
      throw Error(ErrorKind::kStorage, "cannot read, as it is a pipe or a device", fmt::format("'{}'", path_), "name a regular file");
    size_ = status.st_size;
  }
  const std::string& path() const override { return path_; }
  int64_t size() const override { return size_; }
  void read_at(int64_t offset, void* to, int64_t bytes) const override {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
      ssize_t count = ::pread(fd_.get(), out, static_cast<size_t>(std::min(bytes, kMaxTransfer)), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) storage_error("read", path_, errno);
      if (count == 0)
        throw Error(ErrorKind::kStorage, fmt::format("the file ended at byte {} while it was read", offset), fmt::format("'{}'", path_),
                    "check whether another program is changing it");
      out += count, offset += count, bytes -= count;
    }
  }

 private:
  std::string path_;
  Descriptor fd_;
  int64_t size_ = 0;
};

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Whether a file has its name from the start, or gets it when it is closed.
enum class Naming { kNow, kAtClose };

class PosixWritable : public WritableFile {
 public:
  PosixWritable(std::string path, int fd, Naming naming) : path_(std::move(path)), fd_(fd), naming_(naming) {}
  void write_at(int64_t offset, const void* from, int64_t bytes) override {
    const auto* in = static_cast<const char*>(from);
    while (bytes > 0) {
      ssize_t count = ::pwrite(fd_.get(), in, static_cast<size_t>(std::min(bytes, kMaxTransfer)), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) storage_error("write", path_, count < 0 ? errno : ENOSPC);
      in += count, offset += count, bytes -= count;
    }
  }
  void sync() override {
    if (::fsync(fd_.get()) != 0) storage_error("write", path_, errno);
  }
  void close() override {
    const std::string self = fmt::format("/proc/self/fd/{}", fd_.get());
    if (naming_ == Naming::kAtClose && ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      storage_error("create a file", path_, errno);
    // The descriptor is gone even when close reports EINTR: a second try could close another thread's file.
    if (::close(fd_.release()) != 0 && errno != EINTR) storage_error("write", path_, errno);
  }

 private:
  std::string path_;
  Descriptor fd_;
  Naming naming_;
};

class PosixFileSystem : public FileSystem {
 public:
  FileKind kind(const std::string& path) const override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return FileKind::kMissing;
      storage_error("look at", path, errno);
    }
    if (S_ISREG(status.st_mode)) return FileKind::kRegular;
    return S_ISDIR(status.st_mode) ? FileKind::kDirectory : FileKind::kOther;
  }

  std::string resolve(const std::string& path) const override {
    std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    return real ? std::string(real.get()) : path;
  }

  std::vector<std::string> list(const std::string& path) const override {
    auto close_directory = [](DIR* open) { ::closedir(open); };
    std::unique_ptr<DIR, decltype(close_directory)> directory(::opendir(path.c_str()), close_directory);
    if (!directory) storage_error("list", path, errno);
    std::vector<std::string> names;
    for (errno = 0; const dirent* entry = ::readdir(directory.get()); errno = 0)
      if (std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
    if (errno != 0) storage_error("list", path, errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::unique_ptr<ReadableFile> open(const std::string& path) const override {
    // O_NONBLOCK: opening a pipe that nobody writes would hang before it could be refused.
    int fd = open_again(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) storage_error("open", path, errno);
    return std::make_unique<PosixReadable>(path, fd);
  }

  std::string read_all(const std::string& path, int64_t limit) const override {
    Descriptor fd(open_again(path, O_RDONLY));
    if (fd.get() < 0) storage_error("open", path, errno);
    std::string content;
    for (std::string chunk(size_t{64} << 10, '\0');;) {
      ssize_t count = ::read(fd.get(), chunk.data(), chunk.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) storage_error("read", path, errno);
      if (count == 0) return content;
      content.append(chunk, 0, static_cast<size_t>(count));
      if (static_cast<int64_t>(content.size()) > limit)
        usage_error(fmt::format("the file is longer than {}", format_bytes(limit)), fmt::format("'{}'", path),
                    "check that it is the file you mean");
    }
  }

  std::unique_ptr<WritableFile> create(const std::string& path) const override {
    if (::access(path.c_str(), F_OK) == 0) return nullptr;
    // Without a name it vanishes with the process, however that ends. Some file systems (NFS) have no such files.
    if (::access("/proc/self/fd", X_OK) == 0)
      if (int fd = open_again(directory_of(path), O_WRONLY | O_TMPFILE); fd >= 0)
        return std::make_unique<PosixWritable>(path, fd, Naming::kAtClose);
    int fd = open_again(path, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0 && errno == EEXIST) return nullptr;
    if (fd < 0) storage_error("create a file", path, errno);
    return std::make_unique<PosixWritable>(path, fd, Naming::kNow);
  }

  void rename(const std::string& from, const std::string& to) const override {
    if (::rename(from.c_str(), to.c_str()) != 0) storage_error("put the new file in place", to, errno);
  }

  void remove(const std::string& path) const override {
    if (::unlink(path.c_str()) != 0) storage_error("remove", path, errno);
  }

  void sync_directory(const std::string& path) const override {
    Descriptor fd(open_again(path, O_RDONLY | O_DIRECTORY));
    if (fd.get() < 0) storage_error("open", path, errno);
    // Some file systems cannot sync a directory and say EINVAL; their renames are durable by other means or not at all.
    if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) storage_error("write", path, errno);
  }
};

}  // namespace

const FileSystem& local_files() {
  static const PosixFileSystem files;
  return files;
}

void storage_error(const std::string& action, const std::string& path, int error_number) {
  throw Error(ErrorKind::kStorage, fmt::format("cannot {} ({})", action, std::generic_category().message(error_number)),
              fmt::format("'{}'", path), hint(error_number));
}

AtomicFile::AtomicFile(const FileSystem& files, const std::string& path) : files_(files), target_(files.resolve(path)) {
  if (path.empty()) throw Error(ErrorKind::kStorage, "cannot write a file without a name", "''", "name a file");
  FileKind kind = files_.kind(target_);
  if (kind == FileKind::kDirectory || target_.back() == '/') storage_error("write", path, EISDIR);
  // Renaming over a device would replace it: `--save /dev/null` as root must not.
  if (kind == FileKind::kOther)
    throw Error(ErrorKind::kStorage, "cannot write, as it is a pipe or a device", fmt::format("'{}'", path), "name a regular file");
  // The rename at the end would be the first to fail.
  if (target_.size() - target_.rfind('/') - 1 > NAME_MAX) storage_error("write", path, ENAMETOOLONG);
  directory_ = directory_of(target_);
  naming_target([&] {
    for (int attempt = 0; !file_; ++attempt) {  // names that killed runs left are passed over
      if (attempt == 1000) storage_error("create a file", temporary_, EEXIST);
      temporary_ = fmt::format("{}/.espalier-{}-{:x}-{}.tmp", directory_, ::getpid(), reinterpret_cast<uintptr_t>(this), attempt);
      file_ = files_.create(temporary_);
    }
  });
}

// The system's errors name the temporary file, which is not the name that the user knows.
template <class Action>
void AtomicFile::naming_target(Action action) {
  try {
    action();
  } catch (const Error& error) {
    std::string text = error.what();
    if (size_t at = text.find(temporary_); at != std::string::npos) text.replace(at, temporary_.size(), target_);
    throw Error(error.kind(), text);
  }
}

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  file_.reset();
  try {
    files_.remove(temporary_);
  } catch (const Error&) {  // a destructor may run because of the first failure, which is the one to report
  }
}

void AtomicFile::write_at(int64_t offset, const void* from, int64_t bytes) {
  naming_target([&] { file_->write_at(offset, from, bytes); });
}

void AtomicFile::commit() {
  naming_target([&] {
    file_->sync();
    file_->close();
  });
  files_.rename(temporary_, target_);
  temporary_.clear();
  files_.sync_directory(directory_);
}

void write_file(const FileSystem& files, const std::string& path, std::string_view content) {
  AtomicFile file(files, path);
  file.write_at(0, content.data(), static_cast<int64_t>(content.size()));
  file.commit();
}

void check_writable(const FileSystem& files, const std::string& path) { AtomicFile file(files, path); }

}  // namespace espalier

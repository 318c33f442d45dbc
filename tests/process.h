#pragma once
// Runs a program to its end, with its input given and both outputs kept; for tests of the program itself.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

struct Finished {
  int code = 0;  // 128 + n when ended by signal n
  std::string out, err;
  int64_t peak_resident_bytes = 0;
};

struct ProcessOptions {
  std::string input = {};
  enum class Stdout { kKept, kClosedReader, kFull } stdout_to = Stdout::kKept;
  enum class Stderr { kKept, kTerminal } stderr_to = Stderr::kKept;
  int64_t file_limit = 0;                                 // bytes of the largest file that may be written; 0 for any
  int64_t memory_limit = 0;                               // bytes of address space (RLIMIT_AS); 0 for any
  enum class User { kSame, kNobody } user = User::kSame;  // kNobody: without root's right to write everywhere
  // Sends `signal` once standard error holds `signal_at`.
  int signal = 0;
  std::string signal_at = {};
};

inline void checked(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// A pair of descriptors: what is written to the second is read from the first.
struct Pipe {
  int read_end = -1, write_end = -1;
};
inline Pipe make_pipe() {
  int ends[2];
  checked(::pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  return {ends[0], ends[1]};
}
inline Pipe make_terminal() {
  int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  checked(master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0, "posix_openpt");
  int slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  checked(slave >= 0, "ptsname");
  return {master, slave};
}

inline Finished run_process(const std::vector<std::string>& words, const ProcessOptions& options = {}) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe in = make_pipe(), out = make_pipe();
  Pipe err = options.stderr_to == ProcessOptions::Stderr::kTerminal ? make_terminal() : make_pipe();
  if (options.stdout_to == ProcessOptions::Stdout::kFull) {
    ::close(out.write_end);
    out.write_end = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  }
  if (options.stdout_to == ProcessOptions::Stdout::kClosedReader) {
    ::close(out.read_end);
    out.read_end = -1;
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = ::fork();
  checked(child >= 0, "fork");
  if (child == 0) {
    ::dup2(in.read_end, STDIN_FILENO);
    ::dup2(out.write_end, STDOUT_FILENO);
    ::dup2(err.write_end, STDERR_FILENO);
    std::signal(SIGPIPE, SIG_DFL);
    auto limit = [](auto resource, int64_t bytes) {
      const rlimit both = {static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
      if (bytes > 0) ::setrlimit(resource, &both);
    };
    limit(RLIMIT_FSIZE, options.file_limit);
    if (options.user == ProcessOptions::User::kNobody && ::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(126);
    limit(RLIMIT_AS, options.memory_limit);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  for (int end : {in.read_end, out.write_end, err.write_end}) ::close(end);

  Finished finished;
  size_t given = 0;
  bool signalled = options.signal == 0;
  if (options.input.empty()) ::close(std::exchange(in.write_end, -1));
  while (out.read_end >= 0 || err.read_end >= 0) {
    pollfd fds[] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}, {in.write_end, POLLOUT, 0}};
    ::poll(fds, 3, -1);
    auto drain = [](pollfd& fd, int* end, std::string* text) {
      if (*end < 0 || !(fd.revents & (POLLIN | POLLHUP | POLLERR))) return;
      char buffer[1 << 14];
      ssize_t count = ::read(*end, buffer, sizeof buffer);
      if (count > 0) return static_cast<void>(text->append(buffer, static_cast<size_t>(count)));
      ::close(std::exchange(*end, -1));
    };
    drain(fds[0], &out.read_end, &finished.out);
    drain(fds[1], &err.read_end, &finished.err);
    if (in.write_end >= 0 && fds[2].revents) {
      ssize_t count = ::write(in.write_end, options.input.data() + given, options.input.size() - given);
      given += count > 0 ? static_cast<size_t>(count) : 0;
      if (count <= 0 || given == options.input.size()) ::close(std::exchange(in.write_end, -1));
    }
    if (!signalled && finished.err.find(options.signal_at) != std::string::npos) signalled = ::kill(child, options.signal) == 0;
  }
  int status = 0;
  rusage usage = {};
  ::wait4(child, &status, 0, &usage);
  finished.peak_resident_bytes = usage.ru_maxrss * 1024;
  finished.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return finished;
}

}  // namespace espalier

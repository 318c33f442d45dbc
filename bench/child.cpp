#include "bench/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "bench/clock.h"
#include "espalier/base/cores.h"

namespace espalier::bench {
namespace {

struct Started {
  pid_t pid;
  int to, from;  // its standard input and output
};

void checked(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("cannot start a process: ") + what);
}

Started start(const std::vector<std::string>& words, const ChildOptions& options) {
  int in[2], out[2];
  checked(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0, "pipe2");
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::vector<int> available = available_cores();
  const pid_t pid = ::fork();
  checked(pid >= 0, "fork");
  if (pid == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    if (options.cores > 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      for (int i = 0; i < options.cores && i < std::ssize(available); ++i) CPU_SET(available[static_cast<size_t>(i)], &set);
      ::sched_setaffinity(0, sizeof set, &set);
    }
    for (const std::string& variable : options.environment) ::putenv(const_cast<char*>(variable.c_str()));
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  return {pid, in[1], out[0]};
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const ChildOptions& options) {
  const Started started = start(words, options);
  pid_ = started.pid;
  in_ = ::fdopen(started.to, "w");
  out_ = ::fdopen(started.from, "r");
  for (const std::string& word : words) name_ += (name_.empty() ? "" : " ") + word;
}

Child::~Child() {
  if (pid_ < 0) return;
  std::fclose(in_);
  std::fclose(out_);
  ::waitpid(pid_, nullptr, 0);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), in_(other.in_), out_(other.out_), name_(std::move(other.name_)) {}

std::string Child::read_line() {
  std::string line;
  for (int c; (c = std::fgetc(out_)) != '\n'; line += static_cast<char>(c))
    if (c == EOF) throw std::runtime_error("'" + name_ + "' ended before it answered");
  return line;
}

std::string Child::ask(const std::string& line) {
  std::fprintf(in_, "%s\n", line.c_str());
  std::fflush(in_);
  return read_line();
}

Finished run_program(const std::vector<std::string>& words, const ChildOptions& options) {
  Finished finished;
  const double begin = now_seconds();
  const Started started = start(words, options);
  ::close(started.to);
  char buffer[1 << 14];
  for (ssize_t count; (count = ::read(started.from, buffer, sizeof buffer)) > 0;)
    finished.output.append(buffer, static_cast<size_t>(count));
  ::close(started.from);
  int status = 0;
  rusage usage = {};
  ::wait4(started.pid, &status, 0, &usage);
  finished.seconds = now_seconds() - begin;
  finished.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  finished.resident_bytes = usage.ru_maxrss * 1024;
  return finished;
}

}  // namespace espalier::bench

#pragma once
// Other processes: this program again as a worker that is told what to do line by line, and whole programs whose time and memory count.
// A process starts with the largest resident set of the one that started it (the system counts it across exec), so whoever measures
// memory has to be small itself: the table's parent never computes.
#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace espalier::bench {

struct ChildOptions {
  int cores = 0;                              // of this process's, the first so many; 0: all
  std::vector<std::string> environment = {};  // "NAME=value", besides this process's own
};

// A worker: one line in, one line out. Ends when its input closes.
class Child {
 public:
  Child(const std::vector<std::string>& words, const ChildOptions& options = {});
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;

  // Errors: std::runtime_error when the worker has ended instead.
  std::string read_line();
  std::string ask(const std::string& line);

 private:
  pid_t pid_ = -1;
  FILE *in_ = nullptr, *out_ = nullptr;
  std::string name_;
};

struct Finished {
  int code = 0;                // 128 + n when ended by signal n
  double seconds = 0;          // from its start to its end
  int64_t resident_bytes = 0;  // the most that it ever had
  std::string output;          // standard output
};
Finished run_program(const std::vector<std::string>& words, const ChildOptions& options = {});

}  // namespace espalier::bench

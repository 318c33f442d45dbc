#pragma once
// The two kinds of failure. `Error` is for users: thrown, never printed by the library, and it says what, where and what to do.
// `ESPALIER_ASSERT` guards invariants of our own; no input may reach one.
#include <stdexcept>
#include <string>

namespace espalier {

// What went wrong, as the program's exit code (docs: "Exit codes" in the README).
enum class ErrorKind {
  kUsage = 2,      // arguments, model, layout or data are wrong
  kWeights = 3,    // a weights or checkpoint file is refused
  kStorage = 4,    // reading or writing failed
  kDevice = 5,     // a device or peer was lost
  kDeadline = 6,   // a wait took longer than allowed
  kMismatch = 7,   // devices disagree on the next collective
  kWorld = 8,      // the launcher and the world disagree
  kMemory = 9,     // the program does not fit
  kDiverged = 10,  // the loss of a training step is not finite
};

class Error : public std::runtime_error {
 public:
  // `what()` reads "WHAT: WHERE; what to do", the empty parts left out.
  Error(ErrorKind kind, const std::string& what, const std::string& where = "", const std::string& todo = "");
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

// Shorthand for the most frequent kind, ErrorKind::kUsage.
[[noreturn]] void usage_error(const std::string& what, const std::string& where = "", const std::string& todo = "");

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace espalier

#define ESPALIER_ASSERT(condition) ((condition) ? static_cast<void>(0) : ::espalier::assertion_failed(#condition, __FILE__, __LINE__))

// espalier: the program. Reads the command line, runs one command, and turns what was thrown into one line and an exit code.
#include <csignal>
#include <exception>
#include <new>
#include <system_error>

#include "espalier/base/error.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/options.h"
#include "espalier/cli/output.h"

namespace espalier::cli {
namespace {

int dispatch(const Options& options) {
  switch (options.command) {
    case Command::kTrain:
      return train(options);
    case Command::kEvaluate:
      return evaluate(options);
    case Command::kPredict:
      return predict(options);
    case Command::kPlan:
      return plan(options);
    case Command::kInspect:
      return inspect(options);
    case Command::kExplain:
      return explain(options);
    case Command::kVerify:
      return verify(options);
  }
  return 2;
}

int run(int argc, const char* const* argv) {
  Request request = read_options(argc, argv);
  if (!request.text.empty()) {
    write_output(request.text);
    return 0;
  }
  if (!request.options.quiet)
    for (const std::string& flag : request.options.without_effect) note(flag + " has no effect on this command");
  return dispatch(request.options);
}

int report(const std::string& text, int code) {
  print_error(text);
  return code;
}

int guarded(int argc, const char* const* argv) {
  try {
    return run(argc, argv);
  } catch (const BrokenPipe&) {
    return 128 + SIGPIPE;
  } catch (const Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const std::system_error& error) {
    return report(std::string("the system refused (") + error.what() + "): this machine; raise its limits (ulimit -v, ulimit -u)",
                  static_cast<int>(ErrorKind::kMemory));
  } catch (const std::bad_alloc&) {
    return report("there is not enough memory: this machine; use smaller shards or a smaller batch, see: espalier plan",
                  static_cast<int>(ErrorKind::kMemory));
  } catch (const std::exception& error) {
    return report(std::string("an internal error: ") + error.what() + "; please report this", static_cast<int>(ErrorKind::kDevice));
  }
}

}  // namespace
}  // namespace espalier::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not end a training; write_output tells
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is a failure of storage (EFBIG) that names the file
  return espalier::cli::guarded(argc, argv);
}

#include "espalier/cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "espalier/base/file.h"

namespace espalier::cli {

void write_output(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t count = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) throw BrokenPipe{};
    if (count < 0) storage_error("write", "standard output", errno);
    done += static_cast<size_t>(count);
  }
}

void note(const std::string& text) { std::fprintf(stderr, "note: %s\n", text.c_str()); }

}  // namespace espalier::cli

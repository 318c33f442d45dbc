#include "espalier/cli/output.h"

#include <fmt/format.h>
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

std::string one_line(const std::string& text) {
  std::string line;
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n')
      line += "\\n";
    else if (code < 0x20 || code == 0x7f)
      line += fmt::format("\\x{:02x}", code);
    else
      line += c;
  }
  return line;
}

void note(const std::string& text) { std::fprintf(stderr, "note: %s\n", one_line(text).c_str()); }

void print_error(const std::string& text) { std::fprintf(stderr, "error: %s\n", one_line(text).c_str()); }

}  // namespace espalier::cli

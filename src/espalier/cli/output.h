#pragma once
// Standard output, written whole and checked: a full disk is an error, a reader that went away (`| head`) is not.
#include <string>

namespace espalier::cli {

// Thrown when the reader of standard output closed it; the program ends as a shell expects, with 128 + SIGPIPE.
struct BrokenPipe {};

// Errors (kStorage): standard output cannot be written. Throws BrokenPipe.
void write_output(const std::string& text);

// To standard error, as one line with "note: " in front. What cannot be written there is lost.
void note(const std::string& text);

}  // namespace espalier::cli

#pragma once
// Standard output, written whole and checked: a full disk is an error, a reader that went away (`| head`) is not.
#include <string>

namespace espalier::cli {

// Thrown when the reader of standard output closed it; the program ends as a shell expects, with 128 + SIGPIPE.
struct BrokenPipe {};

// Errors (kStorage): standard output cannot be written. Throws BrokenPipe.
void write_output(const std::string& text);

// To standard error, as one line with "note: " or "error: " in front. What cannot be written there is lost.
void note(const std::string& text);
void print_error(const std::string& text);

// Control characters as \n or \x1b: words of the user stand in messages, and must neither break the line nor steer the terminal.
std::string one_line(const std::string& text);

}  // namespace espalier::cli

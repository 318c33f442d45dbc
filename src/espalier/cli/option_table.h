#pragma once
// The tables behind the command line: every option and every command, stated once. Parsing, help and the pinned list of flags read them.
#include <functional>
#include <string>
#include <vector>

#include "espalier/cli/options.h"

namespace espalier::cli {

struct OptionSpec {
  std::string flag;   // "--mesh"
  std::string value;  // what stands behind it, "NAME=SIZE,..."; "": a switch
  std::string group;  // heading in the help
  std::string help;   // what it does, with its default
  std::function<void(Options&, const std::string&)> set;
  std::vector<Command> only = {};  // commands that look at it; empty: all of them
  bool repeatable = false;
};
const std::vector<OptionSpec>& option_table();

struct CommandSpec {
  Command command;
  std::string name;
  std::string words;                                          // behind the name: "MODEL NAME"
  std::string summary;                                        // one line
  std::string text;                                           // what it prints and means
  std::vector<std::pair<std::string, std::string>> examples;  // command line, what it shows
};
const std::vector<CommandSpec>& command_table();
const CommandSpec& spec_of(Command command);

// The texts of `espalier --help` and `espalier COMMAND --help`, of at most 80 columns.
std::string program_help();
std::string command_help(const CommandSpec& command);

}  // namespace espalier::cli

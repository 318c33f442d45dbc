// The help texts, set from the tables.
#include <fmt/format.h>

#include "espalier/cli/option_table.h"
#include "espalier/cli/wrap.h"

namespace espalier::cli {
namespace {

constexpr size_t kIndent = 26;  // where an option's text begins

std::string option_lines(const std::string& head, const std::string& help) {
  std::string text = "  " + head;
  if (head.size() + 3 > kIndent)
    text += "\n" + std::string(kIndent, ' ');
  else
    text += std::string(kIndent - 2 - head.size(), ' ');
  return text + wrap(help, kIndent) + "\n";
}

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 verify found a difference, 2 arguments, model, layout or\n"
    "data are wrong, 3 a weights file is refused, 4 storage failed, 5 a device was\n"
    "lost, 6 a deadline passed, 7 collectives do not match, 9 the model does not fit,\n"
    "10 the loss became nan or infinite, 128+n ended by signal n.\n";

}  // namespace

std::string program_help() {
  std::string text =
      "espalier trains a model that is too large or too slow for one device: it splits\n"
      "the model, the batch or both over a mesh of devices.\n\n"
      "usage: espalier COMMAND MODEL [options]\n\n"
      "MODEL is what Keras 3 writes with model.to_json(); - reads standard input.\n\ncommands:\n";
  for (const CommandSpec& command : command_table()) text += fmt::format("  {:<10}{}\n", command.name, command.summary);
  text +=
      "\nespalier COMMAND --help explains a command and lists the options, which all\n"
      "commands share. espalier --version prints the version.\n\n"
      "examples:\n"
      "  espalier inspect model.json --mesh data=2,model=4\n"
      "  espalier plan model.json --mesh data=2,model=4 --layout layout.json\n"
      "  espalier train model.json --mesh data=2,model=4 --layout layout.json \\\n"
      "      --data fashion-mnist --epochs 5\n"
      "  espalier verify model.json --mesh data=2,model=4 --layout layout.json\n\n";
  return text + kExitCodes;
}

std::string command_help(const CommandSpec& command) {
  std::string text = fmt::format("usage: espalier {} {} [options]\n\n{}\n", command.name, command.words, wrap(command.text, 0));
  std::string group;
  for (const OptionSpec& option : option_table()) {
    bool used = option.only.empty();
    for (Command one : option.only) used |= one == command.command;
    if (!used) continue;
    if (option.group != group) text += fmt::format("\n{}:\n", wrap(group = option.group, 0));
    text += option_lines(option.value.empty() ? option.flag : option.flag + " " + option.value, option.help);
  }
  text += option_lines("--help", "this text") + option_lines("--version", "the program's version") + "\nexamples:\n";
  for (const auto& [line, shows] : command.examples) text += fmt::format("  # {}\n  {}\n", shows, wrap(line, 6, " \\"));
  return text + "\n" + kExitCodes;
}

}  // namespace espalier::cli

#include "espalier/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "espalier/base/error.h"
#include "espalier/base/nearest.h"
#include "espalier/cli/option_table.h"

namespace espalier::cli {
namespace {

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandSpec& command : command_table()) names.push_back(command.name);
  return names;
}

const CommandSpec& find_command(const std::string& name) {
  for (const CommandSpec& command : command_table())
    if (command.name == name) return command;
  usage_error(fmt::format("unknown command '{}'", name), "", suggest(name, command_names()));
}

void check_extras(const std::vector<std::string>& extras, const CommandSpec& command) {
  for (const std::string& word : extras)
    if (word.size() > 1 && word[0] == '-') {
      std::string flag = word.substr(0, word.find('='));
      std::vector<std::string> known = option_flags();
      std::string near = nearest(flag, known);
      usage_error(fmt::format("unknown option '{}'", flag), "",
                  near.empty() ? fmt::format("see: espalier {} --help", command.name) : fmt::format("did you mean '{}'?", near));
    }
  if (!extras.empty())
    usage_error(fmt::format("unexpected argument '{}'", extras.front()), "",
                fmt::format("write: espalier {} {} [options]", command.name, command.words));
}

bool looks_at(const OptionSpec& option, Command command) {
  return option.only.empty() || std::find(option.only.begin(), option.only.end(), command) != option.only.end();
}

void add_option(CLI::App& app, const OptionSpec& spec, Options& options) {
  CLI::callback_t given = [&spec, &options](const std::vector<std::string>& words) {
    if (words.size() > 1 && !spec.repeatable && !spec.value.empty())
      usage_error(fmt::format("{} is given {} times", spec.flag, words.size()), "", "give it once");
    for (const std::string& word : words) {
      if (word.empty() && !spec.value.empty())
        usage_error(fmt::format("{} is given an empty value", spec.flag), "", "give it one, or leave it out");
      if (word.starts_with("--"))
        usage_error(fmt::format("'{}' is followed by '{}' instead of a value", spec.flag, word), "", "give it one");
      spec.set(options, word);
    }
    if (!looks_at(spec, options.command)) options.without_effect.push_back(spec.flag);
    return true;
  };
  if (spec.value.empty())
    app.add_flag_callback(spec.flag, [given] { given({""}); });
  else
    app.add_option(spec.flag, given)->type_size(1)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// "--quiet=maybe", which the parser would answer in its own words.
void refuse_values_of_switches(int argc, const char* const* argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    for (const OptionSpec& option : option_table())
      if (option.value.empty() && option.flag == word.substr(0, equals))
        usage_error(option.flag + " takes no value", fmt::format("'{}'", word), "write it alone, or leave it out");
  }
}

Request text_request(std::string text) {
  Request request;
  request.text = std::move(text);
  return request;
}

}  // namespace

std::vector<std::string> option_flags() {
  std::vector<std::string> flags;
  for (const OptionSpec& option : option_table()) flags.push_back(option.flag);
  flags.insert(flags.end(), {"--help", "--version"});
  return flags;
}

Request read_options(int argc, const char* const* argv) {
  const std::string version = "espalier " ESPALIER_VERSION "\n";
  if (argc < 2)
    usage_error("no command is given", "", fmt::format("give one of {}; see: espalier --help", fmt::join(command_names(), ", ")));
  std::string first = argv[1];
  if (first == "--help" || first == "-h" || (first == "help" && argc == 2)) return text_request(program_help());
  if (first == "help") return text_request(command_help(find_command(argv[2])));
  if (first == "--version") return text_request(version);
  if (first[0] == '-' && first.size() > 1)
    usage_error(fmt::format("'{}' stands where a command belongs", first), "", "write: espalier COMMAND MODEL [options]");
  const CommandSpec& command = find_command(first);

  Request request;
  Options& options = request.options;
  options.command = command.command;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  bool help = false, wants_version = false;
  app.add_flag("--help,-h", help);
  app.add_flag("--version", wants_version);
  app.add_option("MODEL", options.model);
  if (command.command == Command::kExplain) app.add_option("NAME", options.name);
  for (const OptionSpec& option : option_table()) add_option(app, option, options);
  for (int i = 2; i < argc; ++i)
    if (std::string word = argv[i]; word == "--help" || word == "-h") return text_request(command_help(command));
  refuse_values_of_switches(argc, argv);
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ArgumentMismatch& e) {
    std::string flag = argv[argc - 1];
    usage_error(fmt::format("'{}' is followed by no value", flag), "", fmt::format("see: espalier {} --help", command.name));
  } catch (const CLI::ParseError& e) {
    usage_error(e.what(), "", fmt::format("see: espalier {} --help", command.name));
  }
  if (wants_version) return text_request(version);
  check_extras(app.remaining(), command);
  if (options.model.empty())
    usage_error("no model is given", "", fmt::format("write: espalier {} {} [options]", command.name, command.words));
  if (command.command == Command::kExplain && options.name.empty())
    usage_error("no name is given", "", "write: espalier explain MODEL NAME [options], with the name of a variable, a layer or an op");
  if (command.command == Command::kPredict && options.out.empty()) usage_error("predict has nowhere to write", "", "give --out FILE.npy");
  return request;
}

}  // namespace espalier::cli

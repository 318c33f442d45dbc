// Printing a Graph. Reading it back is in parse_graph.cpp.
#include "espalier/ir/text.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace espalier {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

// The shortest text that reads back to the same bits and cannot be taken for an integer.
std::string float_text(double value) {
  if (std::isnan(value)) {
    auto bits = std::bit_cast<uint64_t>(value);
    return bits == 0x7FF8000000000000u ? "nan" : fmt::format("nan:{:016x}", bits);
  }
  std::string text = fmt::format("{}", value);
  return std::isinf(value) || text.find_first_of(".e") != std::string::npos ? text : text + ".0";
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), number_(graph.values.size(), -1) {}

  std::vector<std::string> statements() {
    header();
    for (const Input& input : graph_.inputs) this->input(input);
    for (const Op& op : graph_.ops) this->op(op);
    for (const Output& output : graph_.outputs) this->output(output);
    return std::move(lines_);
  }

 private:
  static std::string attr_text(const Attr& attr) {
    if (const auto* integer = std::get_if<int64_t>(&attr)) return fmt::format("{}", *integer);
    if (const auto* number = std::get_if<double>(&attr)) return float_text(*number);
    if (const auto* text = std::get_if<std::string>(&attr)) return quoted(*text);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attr)) return fmt::format("[{}]", fmt::join(*list, ", "));
    return fmt::format("{{{}}}", fmt::join(Printer(*std::get<std::shared_ptr<const Graph>>(attr)).statements(), "; "));
  }

  void header() {
    if (graph_.name.empty() && graph_.mesh == nullptr) return;
    std::string line = "graph";
    bool word = !graph_.name.empty() && graph_.name != "mesh";
    for (char c : graph_.name) word = word && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_');
    if (!graph_.name.empty()) line += " " + (word ? graph_.name : quoted(graph_.name));
    if (graph_.mesh != nullptr) {
      line += " mesh " + to_string(*graph_.mesh);
      if (graph_.mesh->devices() != list_devices(graph_.mesh->size()))
        line += fmt::format(" devices [\"{}\"]", fmt::join(graph_.mesh->devices(), "\", \""));
    }
    lines_.push_back(line);
  }

  std::string define(ValueId id) {
    number_[static_cast<size_t>(id)] = next_++;
    return use(id);
  }
  std::string use(ValueId id) const { return fmt::format("%{}", number_[static_cast<size_t>(id)]); }
  std::string sharding(ValueId id) const {
    const Value& value = graph_.value(id);
    return graph_.mesh != nullptr ? to_string(value.sharding, *graph_.mesh) : "()";
  }
  // Where no mesh is, nothing is cut; the rank alone is no news.
  bool cut(ValueId id) const { return graph_.mesh != nullptr && !graph_.value(id).sharding.replicated(); }

  void input(const Input& input) {
    std::string line = "in " + define(input.value);
    if (input.role != Role::kData || !input.name.empty()) line += fmt::format(" {} {}", to_string(input.role), quoted(input.name));
    line += " " + to_string(graph_.type(input.value));
    if (cut(input.value)) line += " " + sharding(input.value);
    lines_.push_back(line);
  }

  void op(const Op& op) {
    std::vector<std::string> results, operands, attrs, shardings;
    bool any_cut = false;
    for (ValueId id : op.operands) operands.push_back(use(id));
    for (ValueId id : op.results) {
      const std::string& name = graph_.value(id).name;
      results.push_back(fmt::format("{}{}:{}", define(id), name.empty() ? "" : " " + quoted(name), to_string(graph_.type(id))));
      shardings.push_back(sharding(id));
      any_cut = any_cut || cut(id);
    }
    for (const auto& [name, value] : op.attrs) attrs.push_back(name + "=" + attr_text(value));
    std::string line = fmt::format("{} = {}({})", fmt::join(results, ", "), op.def->name, fmt::join(operands, ", "));
    if (!attrs.empty()) line += fmt::format(" {{{}}}", fmt::join(attrs, ", "));
    if (any_cut) line += fmt::format(" {}", fmt::join(shardings, ", "));
    if (op.phase != Phase::kForward) line += fmt::format(" @{}", to_string(op.phase));
    if (!op.scope.empty()) line += " " + quoted(op.scope);
    if (!op.reason.empty()) line += " because " + quoted(op.reason);
    lines_.push_back(line);
  }

  void output(const Output& output) {
    std::string line = "out ";
    if (output.role != Role::kResult || !output.name.empty()) line += fmt::format("{} {} ", to_string(output.role), quoted(output.name));
    lines_.push_back(line + use(output.value));
  }

  const Graph& graph_;
  std::vector<int> number_;  // of each value, in order of appearance
  int next_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace

std::string print(const Graph& graph) {
  std::string text;
  for (const std::string& line : Printer(graph).statements()) text += line + '\n';
  return text;
}

}  // namespace espalier

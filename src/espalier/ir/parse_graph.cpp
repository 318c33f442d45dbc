// Reading the text form of a Graph (text.h). A recursive descent of bounded depth: only bodies nest.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "espalier/base/nearest.h"
#include "espalier/ir/text.h"

namespace espalier {
namespace {

constexpr int kMaxDepth = 8;                        // bodies in bodies; fusion makes one level
constexpr int64_t kMaxElements = int64_t{1} << 56;  // bytes and sums of a few of them stay far inside int64
constexpr size_t kMostAttributes = 64;              // of one op, which has at most six; bounds the search for one given twice
constexpr int64_t kMostDevices = 1 << 16;           // a mesh lists its devices, so a few digits would else take 100 MB
constexpr size_t kLongestShown = 64;                // of a wrong word in a message; longer than any right one

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }

// A position in the text, and the tokens the form is made of.
class Cursor {
 public:
  explicit Cursor(const std::string& text) : text_(text) {}

  size_t at() const { return at_; }
  bool done() const { return at_ == text_.size(); }
  void rewind(size_t at) { at_ = at; }

  // The next character that is no blank and in no comment; '\0' at the end. A new line counts as a statement's end unless `lines` are
  // blank too, as they are inside brackets.
  char peek() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (text_.compare(at_, 2, "//") == 0)
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && brackets_ > 0))
        ++at_;
      else
        return c;
    }
    return '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted || done()) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("expected '{}' before {}", wanted, next_text()));
  }
  void open(char bracket) {
    expect(bracket);
    ++brackets_;
  }
  bool accept_close(char bracket) {
    if (!accept(bracket)) return false;
    --brackets_;
    return true;
  }
  // Between the items of a bracketed list: true when another follows.
  bool another(char close) {
    if (accept_close(close)) return false;
    if (!accept(',')) fail(fmt::format("expected ',' or '{}' before {}", close, next_text()));
    return true;
  }
  // Statements of a body end with lines although the body stands in brackets.
  int enter_body() { return std::exchange(brackets_, 0); }
  void leave_body(int brackets) { brackets_ = brackets; }

  // Letters, digits, '_' and '.'; empty when something else stands here.
  std::string_view word() {
    peek();
    size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return std::string_view(text_).substr(begin, at_ - begin);
  }
  bool accept_word(std::string_view wanted) {
    peek();
    size_t begin = at_;
    if (word() == wanted) return true;
    at_ = begin;
    return false;
  }
  std::string_view number() {
    peek();
    size_t begin = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '-' || text_[at_] == '+' || text_[at_] == ':')) ++at_;
    return std::string_view(text_).substr(begin, at_ - begin);
  }
  int64_t integer(const std::string& what) {
    peek();
    size_t begin = at_;
    std::string_view digits = number();
    int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) fail_at(begin, fmt::format("{} '{}' is too large", what, digits));
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
      fail_at(begin, digits.empty() ? fmt::format("expected {} before {}", what, next_text()) : fmt::format("'{}' is no {}", digits, what));
    return value;
  }

  std::string string(char quote) {
    peek();
    size_t begin = at_;
    if (!accept(quote)) fail(fmt::format("expected {} before {}", quote, next_text()));
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') out += text_[at_] == '\\' ? escaped() : text_[at_++];
    if (at_ == text_.size() || text_[at_] != quote) fail_at(begin, "a quote is not closed");
    ++at_;
    return out;
  }

  // What stands here, for messages.
  std::string next_text() {
    char c = peek();
    if (done()) return "the end of the text";
    if (c == '\n') return "the end of the line";
    size_t begin = at_;
    std::string found(word().substr(0, 20));
    at_ = begin;
    return fmt::format("'{}'", found.empty() ? std::string(1, c) : found);
  }

  // "line 3, column 14".
  std::string place(size_t position) {
    for (; counted_ < position; ++counted_)
      if (text_[counted_] == '\n') line_starts_.push_back(counted_ + 1);
    auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), position) - 1;
    return fmt::format("line {}, column {}", line - line_starts_.begin() + 1, position - *line + 1);
  }
  [[noreturn]] void fail_at(size_t position, const std::string& what, const std::string& todo = "") {
    usage_error(what, place(position), todo);
  }
  [[noreturn]] void fail(const std::string& what, const std::string& todo = "") {
    peek();
    fail_at(at_, what, todo);
  }

 private:
  char escaped() {
    size_t begin = at_++;
    char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (c == '"' || c == '\'' || c == '\\') return c;
    if (c == 'n') return '\n';
    unsigned value = 0;
    if (c == 'x' && at_ + 2 <= text_.size()) {
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 2, value, 16);
      if (error == std::errc() && end == text_.data() + at_ + 2) {
        at_ += 2;
        return static_cast<char>(value);
      }
    }
    fail_at(begin, "unknown escape in a string", "known: \\\" \\' \\\\ \\n \\x and two hexadecimal digits");
  }

  const std::string& text_;
  size_t at_ = 0;
  int brackets_ = 0;
  size_t counted_ = 0;
  std::vector<size_t> line_starts_ = {0};  // of the text up to counted_
};

template <class Enum>
Enum named(Cursor& cursor, std::initializer_list<Enum> all, const char* what) {
  size_t begin = (cursor.peek(), cursor.at());
  std::string word(cursor.word().substr(0, kLongestShown));
  std::vector<std::string> names;
  for (Enum one : all) {
    if (word == to_string(one)) return one;
    names.push_back(to_string(one));
  }
  cursor.fail_at(begin,
                 word.empty() ? fmt::format("expected a {} before {}", what, cursor.next_text()) : fmt::format("'{}' is no {}", word, what),
                 suggest(word, names));
}

class Parser {
 public:
  Parser(Cursor& cursor, int depth) : cursor_(cursor), depth_(depth) {}

  // Statements up to the end of the text, or to the '}' of a body.
  Graph graph() {
    for (bool first = true;; first = false) {
      while (cursor_.accept('\n') || cursor_.accept(';')) {
      }
      char c = cursor_.peek();
      if (cursor_.done() || (c == '}' && depth_ > 0)) break;
      statement(first);
      char end = cursor_.peek();
      if (!cursor_.done() && end != '\n' && end != ';' && !(end == '}' && depth_ > 0))
        cursor_.fail("expected the end of the line before " + cursor_.next_text());
    }
    if (depth_ > 0) cursor_.expect('}');
    return std::move(graph_);
  }

 private:
  void statement(bool first) {
    if (cursor_.peek() == '%') return op();
    size_t begin = cursor_.at();
    std::string word(cursor_.word());
    if (word == "in") return input();
    if (word == "out") return output();
    if (word != "graph")
      cursor_.fail_at(begin,
                      word.empty() ? "expected a statement before " + cursor_.next_text() : fmt::format("'{}' starts no statement", word),
                      "a line is: graph NAME, in %0 ..., %1 = op(...) or out %1");
    if (!first || depth_ > 0) cursor_.fail_at(begin, "'graph' stands only on the first line");
    header();
  }

  void header() {
    if (cursor_.peek() == '"')
      graph_.name = cursor_.string('"');
    else if (!cursor_.accept_word("mesh"))
      graph_.name = cursor_.word();
    else
      return mesh();
    if (cursor_.accept_word("mesh")) mesh();
  }

  void mesh() {
    std::vector<int64_t> shape;
    std::vector<std::string> names, devices;
    cursor_.peek();
    size_t begin = cursor_.at();
    cursor_.open('{');
    if (!cursor_.accept_close('}')) do {
        names.push_back(cursor_.string('\''));
        cursor_.expect(':');
        shape.push_back(cursor_.integer("axis size"));
      } while (cursor_.another('}'));
    if (cursor_.accept_word("devices")) {
      cursor_.open('[');
      if (!cursor_.accept_close(']')) do
          devices.push_back(cursor_.string('"'));
        while (cursor_.another(']'));
    }
    int64_t places = 1;
    for (int64_t size : shape) {
      if (size > kMostDevices / places) cursor_.fail_at(begin, fmt::format("the mesh has more than {} devices", kMostDevices));
      places *= std::max<int64_t>(size, 1);
    }
    try {
      graph_.mesh = std::make_shared<const DeviceMesh>(std::move(shape), std::move(names), std::move(devices));
    } catch (const Error& error) {
      cursor_.fail_at(begin, error.what());
    }
  }

  void input() {
    Input input;
    input.value = static_cast<ValueId>(graph_.values.size());
    std::string name = new_name();
    if (cursor_.peek() >= 'a' && !at_type()) {
      input.role = named(cursor_, {Role::kVariable, Role::kOptimizer, Role::kData, Role::kScalar}, "role of an input");
      size_t begin = (cursor_.peek(), cursor_.at());
      input.name = cursor_.string('"');
      if (!input_names_.emplace(input.name, input.value).second)
        cursor_.fail_at(begin, fmt::format("input '{}' is there twice", input.name));
    }
    TensorType type = this->type();
    graph_.values.push_back({.type = type, .sharding = optional_sharding(type), .name = input.name});
    graph_.inputs.push_back(input);
    values_.emplace(name, input.value);
  }

  void output() {
    Output output;
    size_t begin = (cursor_.peek(), cursor_.at());
    if (cursor_.peek() != '%') {
      output.role = named(cursor_, {Role::kVariable, Role::kOptimizer, Role::kGradient, Role::kResult}, "role of an output");
      output.name = cursor_.string('"');
    }
    output.value = used_value();
    if (output.role == Role::kVariable || output.role == Role::kOptimizer) check_replaced(output, begin);
    graph_.outputs.push_back(std::move(output));
  }

  void check_replaced(const Output& output, size_t position) {
    if (!replaced_.emplace(output.name, output.value).second)
      cursor_.fail_at(position, fmt::format("output '{}' is there twice", output.name));
    auto input = input_names_.find(output.name);
    if (input != input_names_.end() && !(graph_.type(input->second) == graph_.type(output.value)))
      cursor_.fail_at(position, fmt::format("output '{}' is {} but the input it replaces is {}", output.name,
                                            to_string(graph_.type(output.value)), to_string(graph_.type(input->second))));
  }

  struct Result {
    std::string name, label;
    size_t position = 0;
    std::optional<TensorType> type;
  };

  void op() {
    std::vector<Result> results;
    std::unordered_set<std::string> names;
    do {
      Result result;
      result.position = cursor_.at();
      result.name = new_name();
      if (!names.insert(result.name).second) cursor_.fail_at(result.position, fmt::format("value '%{}' is defined twice", result.name));
      if (cursor_.peek() == '"') result.label = cursor_.string('"');
      if (cursor_.accept(':')) result.type = type();
      results.push_back(std::move(result));
    } while (cursor_.accept(',') && (cursor_.peek(), true));
    cursor_.expect('=');
    cursor_.peek();
    size_t position = cursor_.at();
    Op op{.def = definition()};
    cursor_.open('(');
    if (!cursor_.accept_close(')')) do
        op.operands.push_back(used_value());
      while (cursor_.another(')'));
    if (cursor_.peek() == '{') attributes(op.attrs);
    append(std::move(op), results, position);
    trailer();
  }

  const OpDef* definition() {
    size_t begin = cursor_.at();
    std::string name(cursor_.word().substr(0, kLongestShown));
    if (name.empty()) cursor_.fail("expected the name of an op before " + cursor_.next_text());
    const OpDef* def = find_op(name);
    if (def != nullptr) return def;
    std::vector<std::string> names;
    for (const OpDef* known : all_ops()) names.push_back(known->name);
    cursor_.fail_at(begin, fmt::format("there is no op '{}'", name), suggest(name, names));
  }

  void append(Op op, const std::vector<Result>& results, size_t position) {
    op.scope = cursor_.place(position);  // where `append` says an error is; the op's own scope is read later
    graph_.append(std::move(op));
    Op& added = graph_.ops.back();
    added.scope.clear();
    if (added.results.size() != results.size())
      cursor_.fail_at(position, fmt::format("op '{}' has {} results, not {}", added.def->name, added.results.size(), results.size()));
    for (size_t r = 0; r < results.size(); ++r) {
      Value& value = graph_.value(added.results[r]);
      check_size(value.type.shape, position);
      if (results[r].type && !(*results[r].type == value.type))
        cursor_.fail_at(results[r].position,
                        fmt::format("value '%{}' is {}, not {}", results[r].name, to_string(value.type), to_string(*results[r].type)));
      value.name = results[r].label;
      values_.emplace(results[r].name, added.results[r]);
    }
  }

  // Sharding, phase, scope and reason of the op just added.
  void trailer() {
    Op& op = graph_.ops.back();
    if (cursor_.peek() == '(')
      for (size_t r = 0; r < op.results.size(); ++r) {
        if (r > 0) cursor_.expect(',');
        Value& value = graph_.value(op.results[r]);
        value.sharding = sharding(value.type);
      }
    if (cursor_.accept('@')) op.phase = named(cursor_, {Phase::kForward, Phase::kBackward, Phase::kUpdate}, "phase");
    if (cursor_.peek() == '"') op.scope = cursor_.string('"');
    if (cursor_.accept_word("because")) op.reason = cursor_.string('"');
  }

  void attributes(Attrs& attrs) {
    cursor_.open('{');
    if (cursor_.accept_close('}')) return;
    do {
      size_t begin = (cursor_.peek(), cursor_.at());
      std::string name(cursor_.word());
      if (name.empty()) cursor_.fail("expected the name of an attribute before " + cursor_.next_text());
      if (std::distance(attrs.begin(), attrs.end()) == kMostAttributes)
        cursor_.fail_at(begin, fmt::format("an op has more than {} attributes", kMostAttributes));
      if (attrs.has(name)) cursor_.fail_at(begin, fmt::format("attribute '{}' is there twice", name));
      cursor_.expect('=');
      attrs.set(name, attribute());
    } while (cursor_.another('}'));
  }

  Attr attribute() {
    char c = cursor_.peek();
    if (c == '"') return cursor_.string('"');
    if (c == '[') return integers();
    if (c == '{') return body();
    size_t begin = cursor_.at();
    std::string_view text = cursor_.number();
    int64_t integer = 0;
    double number = 0;
    const char* last = text.data() + text.size();
    if (text.starts_with("nan:")) {
      uint64_t bits = 0;
      auto read = std::from_chars(text.data() + 4, last, bits, 16);
      number = std::bit_cast<double>(bits);
      if (read.ec == std::errc() && read.ptr == last && number != number) return number;
    } else if (auto read = std::from_chars(text.data(), last, integer); read.ec == std::errc() && read.ptr == last) {
      return integer;
    } else if (text.find_first_not_of("0123456789-") != std::string_view::npos) {
      auto as_float = std::from_chars(text.data(), last, number);
      if (as_float.ec == std::errc() && as_float.ptr == last) return number;
    }
    cursor_.fail_at(begin, text.empty() ? "expected a value before " + cursor_.next_text() : fmt::format("'{}' is no number", text),
                    "a value is a number, a \"string\", a [list] or a {body}");
  }

  std::vector<int64_t> integers() {
    std::vector<int64_t> list;
    cursor_.open('[');
    if (!cursor_.accept_close(']')) do
        list.push_back(cursor_.integer("integer"));
      while (cursor_.another(']'));
    return list;
  }

  std::shared_ptr<const Graph> body() {
    if (depth_ == kMaxDepth) cursor_.fail(fmt::format("bodies stand in bodies more than {} deep", kMaxDepth));
    cursor_.expect('{');
    int brackets = cursor_.enter_body();
    auto graph = std::make_shared<const Graph>(Parser(cursor_, depth_ + 1).graph());
    cursor_.leave_body(brackets);
    return graph;
  }

  std::string new_name() {
    size_t begin = (cursor_.peek(), cursor_.at());
    std::string name = value_name();
    if (values_.count(name) != 0) cursor_.fail_at(begin, fmt::format("value '%{}' is defined twice", name));
    return name;
  }
  std::string value_name() {
    cursor_.expect('%');
    std::string name(cursor_.word());
    if (name.empty()) cursor_.fail("expected the name of a value before " + cursor_.next_text());
    return name;
  }
  ValueId used_value() {
    size_t begin = (cursor_.peek(), cursor_.at());
    std::string name = value_name();
    auto found = values_.find(name);
    if (found == values_.end()) cursor_.fail_at(begin, fmt::format("value '%{}' is not defined", name), "a value stands above its uses");
    return found->second;
  }

  bool at_type() {
    size_t begin = cursor_.at();
    std::string_view word = cursor_.word();
    bool type = (word == to_string(DType::kF32) || word == to_string(DType::kI32)) && cursor_.peek() == '[';
    cursor_.rewind(begin);
    return type;
  }

  TensorType type() {
    TensorType type;
    type.dtype = named(cursor_, {DType::kF32, DType::kI32}, "type");
    size_t begin = cursor_.at();
    cursor_.open('[');
    if (!cursor_.accept_close(']')) do {
        int64_t size = cursor_.integer("size");
        if (type.shape.rank() == kMaxRank) cursor_.fail_at(begin, fmt::format("a shape has more than {} dims", kMaxRank));
        type.shape.push_back(size);
      } while (cursor_.another(']'));
    check_size(type.shape, begin);
    return type;
  }

  // Zeros count as ones: strides of an empty tensor are computed too.
  void check_size(const Dims& shape, size_t position) {
    int64_t product = 1;
    for (int64_t size : shape) {
      if (size < 0) cursor_.fail_at(position, fmt::format("shape {} has a negative size", to_string(shape)));
      if (size > kMaxElements / product) cursor_.fail_at(position, fmt::format("shape {} has more than 2^56 elements", to_string(shape)));
      product *= std::max<int64_t>(size, 1);
    }
  }

  Sharding optional_sharding(const TensorType& type) { return cursor_.peek() == '(' ? sharding(type) : Sharding(type.shape.rank()); }

  // "(None, ('data', 'model'))+sum('stage')"
  Sharding sharding(const TensorType& type) {
    size_t begin = (cursor_.peek(), cursor_.at());
    if (graph_.mesh == nullptr) cursor_.fail("a sharding needs a mesh", "start with: graph NAME mesh {'data': 2}");
    Sharding sharding(type.shape.rank());
    AxisSet seen = 0;
    int dim = 0;
    cursor_.open('(');
    while (!cursor_.accept_close(')')) {
      if (dim == type.shape.rank())
        cursor_.fail_at(begin, fmt::format("a sharding of {} needs {} entries", to_string(type), type.shape.rank()));
      AxisList& axes = sharding.dims[static_cast<size_t>(dim++)];
      if (cursor_.peek() == '(')
        axis_group([&](int axis) { axes.push_back(axis); }, seen);
      else if (!cursor_.accept_word("None"))
        axis([&](int axis) { axes.push_back(axis); }, seen);
      if (!cursor_.accept(',') && cursor_.peek() != ')') cursor_.fail("expected ',' or ')' before " + cursor_.next_text());
    }
    if (dim != type.shape.rank())
      cursor_.fail_at(begin, fmt::format("a sharding of {} needs {} entries", to_string(type), type.shape.rank()));
    if (cursor_.accept('+')) {
      Reduction reduction = named(cursor_, {Reduction::kSum, Reduction::kMax, Reduction::kLogSumExp}, "reduction");
      axis_group([&](int axis) { sharding.pending |= AxisSet{1} << axis; }, seen);
      if (sharding.pending != 0) sharding.reduction = reduction;
    }
    return sharding;
  }

  template <class Add>
  void axis_group(Add add, AxisSet& seen) {
    cursor_.open('(');
    while (!cursor_.accept_close(')')) {
      axis(add, seen);
      if (!cursor_.accept(',') && cursor_.peek() != ')') cursor_.fail("expected ',' or ')' before " + cursor_.next_text());
    }
  }
  // Axes of size 1 are no axes of a sharding.
  template <class Add>
  void axis(Add add, AxisSet& seen) {
    size_t begin = (cursor_.peek(), cursor_.at());
    std::string name = cursor_.string('\'');
    int axis = graph_.mesh->axis(name, cursor_.place(begin));
    if ((seen >> axis & 1) != 0) cursor_.fail_at(begin, fmt::format("axis '{}' appears twice", name));
    seen |= AxisSet{1} << axis;
    if (graph_.mesh->shape()[static_cast<size_t>(axis)] > 1) add(axis);
  }

  Cursor& cursor_;
  int depth_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> values_, input_names_, replaced_;
};

}  // namespace

Graph parse_graph(const std::string& text) {
  Cursor cursor(text);
  return Parser(cursor, 0).graph();
}

}  // namespace espalier

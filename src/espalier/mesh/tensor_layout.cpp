#include "espalier/mesh/tensor_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "espalier/base/error.h"

namespace espalier {
namespace {

// A cursor over the text form; every complaint names the whole text and the position in it.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  TensorLayout layout() {
    expect('(');
    std::vector<DimAxes> dims;
    while (!accept(')')) {
      dims.push_back(dim());
      if (!accept(',') && peek() != ')') fail("expected ',' or ')'");
    }
    if (peek() != '\0' || at_ != text_.size()) fail("nothing may follow the ')'");
    return TensorLayout(std::move(dims));
  }

 private:
  DimAxes dim() {
    if (peek() == 'N') {
      if (text_.compare(at_, 4, "None") != 0) fail("expected None");
      at_ += 4;
      return {};
    }
    if (!accept('(')) return DimAxes(name());
    std::vector<std::string> names;
    while (!accept(')')) {
      names.push_back(name());
      if (!accept(',') && peek() != ')') fail("expected ',' or ')'");
    }
    return DimAxes(std::move(names));
  }

  std::string name() {
    char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected None, a quoted axis name or a list of them");
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail("a quote is not closed");
    std::string name = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return name;
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (at_ == text_.size() || peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("expected '{}'", wanted));
  }
  [[noreturn]] void fail(const std::string& problem) const {
    usage_error(fmt::format("layout '{}' cannot be read: {} at position {}", text_, problem, at_), "",
                "write it as (None, 'model') or (('data', 'model'), None)");
  }

  const std::string& text_;
  size_t at_ = 0;
};

std::string dim_text(const DimAxes& dim) {
  if (dim.names.empty()) return "None";
  if (dim.names.size() == 1) return "'" + dim.names[0] + "'";
  return fmt::format("('{}')", fmt::join(dim.names, "', '"));
}

}  // namespace

bool is_axis_name(std::string_view name) {
  constexpr std::string_view kReserved = "'\"`,=()[]{}\\ \x7f";
  return !name.empty() && std::none_of(name.begin(), name.end(), [&](char c) {
    return static_cast<unsigned char>(c) < 0x20 || kReserved.find(c) != std::string_view::npos;
  });
}

TensorLayout::TensorLayout(std::vector<DimAxes> dims) : dims_(std::move(dims)) {
  std::set<std::string> seen;
  for (const DimAxes& dim : dims_)
    for (const std::string& name : dim.names) {
      if (!is_axis_name(name))
        usage_error(fmt::format("'{}' is no axis name", name), "layout " + to_string(*this), "use letters, digits, '_', '-' or '.'");
      if (!seen.insert(name).second)
        usage_error(fmt::format("axis '{}' appears twice", name), "layout " + to_string(*this),
                    "an axis cuts one dim only; use another axis or None");
    }
}

TensorLayout TensorLayout::parse(const std::string& text) { return Reader(text).layout(); }

std::string to_string(const TensorLayout& layout) {
  std::vector<std::string> dims;
  for (const DimAxes& dim : layout.dims()) dims.push_back(dim_text(dim));
  return fmt::format("({}{})", fmt::join(dims, ", "), dims.size() == 1 ? "," : "");
}

}  // namespace espalier

#include "espalier/mesh/layout_map.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "espalier/base/nearest.h"
#include "espalier/base/text.h"

namespace espalier {
namespace {

using re2::RE2;

// Ten characters can be a program of megabytes: "\\pL{999}". A path written out takes an instruction of 16 bytes a character.
constexpr int64_t kKeyBytes = 1 << 18, kBytesPerCharacter = 64;
constexpr int64_t kMaxInstructions = 1 << 20;  // of all keys together: 16 MiB
constexpr size_t kMaxRules = 1 << 16;          // a compiled key takes 1 to 2 KiB at least; the largest models have some thousand variables

RE2::Options quiet(const std::string& key) {
  RE2::Options options;
  options.set_log_errors(false);  // the library prints nothing
  options.set_max_mem(kKeyBytes + kBytesPerCharacter * static_cast<int64_t>(key.size()));
  return options;
}

// Where a parenthesis has no partner: the last open one, or the first that closes nothing. RE2 blames the whole key for these.
size_t lone_parenthesis(const std::string& key) {
  std::vector<size_t> open;
  bool in_class = false;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '\\') {
      ++i;
    } else if (in_class) {
      in_class = key[i] != ']';
    } else if (key[i] == '[') {
      in_class = true;
    } else if (key[i] == '(') {
      open.push_back(i);
    } else if (key[i] == ')') {
      if (open.empty()) return i;
      open.pop_back();
    }
  }
  return open.empty() ? 0 : open.back();
}

std::shared_ptr<const RE2> compile(const std::string& key) {
  auto pattern = std::make_shared<const RE2>(key, quiet(key));
  if (pattern->ok()) return pattern;
  bool lone = pattern->error_code() == RE2::ErrorMissingParen || pattern->error_code() == RE2::ErrorUnexpectedParen;
  size_t at = lone ? lone_parenthesis(key) : key.find(pattern->error_arg());
  if (at == std::string::npos) at = 0;  // an escape that RE2 rewrote: the fragment is in its message
  usage_error(fmt::format("layout rule '{}' is a broken regular expression", key),
              fmt::format("{}, at position {}: '{}'", pattern->error(), at, key.substr(at)),
              "close or escape it; a key is a variable's path or a regular expression for a whole path");
}

bool fits(const LayoutRule& rule, std::optional<int> rank) { return !rule.rank || !rank || *rule.rank == *rank; }

bool matches(const LayoutRule& rule, const std::string& path) { return rule.key == path || RE2::FullMatch(path, *rule.pattern); }

std::vector<std::string> paths_of(std::span<const VariableShape> variables) {
  std::vector<std::string> paths;
  for (const VariableShape& variable : variables) paths.push_back(variable.path);
  return paths;
}

std::string rule_and_variable(const LayoutRule& rule, const std::string& path) {
  return rule.key == path ? fmt::format("layout rule '{}'", path) : fmt::format("variable '{}', layout rule '{}'", path, rule.key);
}

// A key with which the rule would match: ".*KEY", "KEY.*" or ".*KEY.*"; "" when it is found in no path.
std::string widened(const LayoutRule& rule, std::span<const VariableShape> variables, std::string* path) {
  std::string inner = rule.key.find('|') == std::string::npos ? rule.key : "(?:" + rule.key + ")";
  for (const std::string& key : {".*" + inner, inner + ".*", ".*" + inner + ".*"}) {
    RE2 pattern(key, quiet(key));
    for (const VariableShape& variable : variables)
      if (pattern.ok() && fits(rule, variable.shape.rank()) && RE2::FullMatch(variable.path, pattern)) {
        *path = variable.path;
        return key;
      }
  }
  return "";
}

[[noreturn]] void refuse_idle(const LayoutRule& rule, std::span<const VariableShape> variables) {
  const std::string what = fmt::format("layout rule '{}' matches no variable", rule.key);
  const std::string see = fmt::format("({} variable{}, see: espalier inspect)", variables.size(), variables.size() == 1 ? "" : "s");
  for (const VariableShape& variable : variables)
    if (matches(rule, variable.path))
      usage_error(fmt::format("layout rule '{}' is for rank {} but '{}' of shape {} has rank {}", rule.key, *rule.rank, variable.path,
                              to_string(variable.shape), variable.shape.rank()),
                  "", "leave the rank out, or write a rule for that rank");
  std::string path = nearest(rule.key, paths_of(variables));
  if (path.ends_with("/" + rule.key)) usage_error(what, "", fmt::format("did you mean '{}'? {}", path, see));
  if (std::string key = widened(rule, variables, &path); !key.empty())
    usage_error(what, "", fmt::format("a key has to match the whole path; it would match as '{}', for example '{}' {}", key, path, see));
  usage_error(what, "", variables.empty() ? "the model has none" : suggest(rule.key, paths_of(variables)) + " " + see);
}

// Every rule has to be of use; one whose variables all have keys of their own is only worth a warning.
void check_rules_used(const LayoutMap& map, std::span<const VariableShape> variables, Resolution* resolution) {
  for (const LayoutRule& rule : map) {
    bool used = std::any_of(resolution->variables.begin(), resolution->variables.end(),
                            [&](const ResolvedVariable& variable) { return variable.rule == rule.key; });
    if (used) continue;
    bool shadowed = std::any_of(variables.begin(), variables.end(), [&](const VariableShape& variable) {
      return fits(rule, variable.shape.rank()) && matches(rule, variable.path);
    });
    if (!shadowed) refuse_idle(rule, variables);
    resolution->warnings.push_back(fmt::format("layout rule '{}' has no effect: each variable that it matches is a key itself", rule.key));
  }
}

// A regex of two or more entries that fits one variable and is too short for another: (None, 'model') on a kernel (d, f) and on an expert's
// (e, d, f) cannot both be meant. One entry is clear: it cuts the first dim of whatever it meets.
void check_ranks_agree(const LayoutMap& map, std::span<const VariableShape> variables, const Resolution& resolution) {
  for (const LayoutRule& rule : map) {
    if (rule.layout.rank() < 2) continue;
    const VariableShape *exact = nullptr, *higher = nullptr;
    for (size_t i = 0; i < variables.size(); ++i) {
      if (resolution.variables[i].rule != rule.key) continue;
      const VariableShape*& slot = variables[i].shape.rank() == rule.layout.rank() ? exact : higher;
      if (!slot) slot = &variables[i];
    }
    if (exact && higher)
      usage_error(fmt::format("layout rule '{}' of rank {} meets '{}' of shape {}, rank {}", rule.key, rule.layout.rank(), higher->path,
                              to_string(higher->shape), higher->shape.rank()),
                  fmt::format("it fits '{}' of shape {}", exact->path, to_string(exact->shape)),
                  "limit the rule to one rank, or write a rule for each");
  }
}

// The dim that would have been the better one to cut in k: whole until now and longer than n; one that k divides is best, then the longest.
std::optional<int> better_dim(const Sharding& sharding, const Dims& shape, int64_t n, int64_t k) {
  std::optional<int> best;
  auto merit = [&](int d) { return std::pair(shape[d] % k == 0, shape[d]); };
  for (int d = 0; d < shape.rank(); ++d)
    if (sharding.dims[static_cast<size_t>(d)].empty() && shape[d] > n && (!best || merit(d) > merit(*best))) best = d;
  return best;
}

void warn_empty_shards(const ResolvedVariable& variable, const Dims& shape, const DeviceMesh& mesh, std::vector<std::string>* warnings) {
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t n = shape[d], k = part_count(variable.sharding.dims[static_cast<size_t>(d)], mesh);
    if (n == 0 || n >= k) continue;
    std::string text = fmt::format("layout rule '{}' cuts dim {} (size {}) of '{}' {} into {} parts, {} of them empty", *variable.rule, d,
                                   n, variable.path, to_string(shape), k, k - n);
    if (std::optional<int> better = better_dim(variable.sharding, shape, n, k))
      text += fmt::format("; dim {} (size {}) is the better one to cut", *better, shape[*better]);
    warnings->push_back(std::move(text));
  }
}

std::string listed(const std::vector<const VariableShape*>& variables) {
  constexpr size_t kShown = 12;
  std::vector<std::string> texts;
  for (const VariableShape* variable : variables) {
    if (texts.size() == kShown) {
      texts.push_back(fmt::format("{} more", variables.size() - kShown));
      break;
    }
    int64_t bytes = checked_volume(variable->shape, "variable '" + variable->path + "'") * variable->element_bytes;
    texts.push_back(fmt::format("'{}' ({})", variable->path, format_bytes(bytes)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void report_unmatched(const std::vector<const VariableShape*>& variables, Unmatched unmatched, std::vector<std::string>* notes) {
  if (variables.empty()) return;
  std::string count = fmt::format("{} variable{}", variables.size(), variables.size() == 1 ? "" : "s");
  std::string matches = variables.size() == 1 ? "matches" : "match";
  if (unmatched == Unmatched::kRefuse)
    usage_error(fmt::format("{} {} no layout rule", count, matches), listed(variables), "add rules for them, or do not ask for --strict");
  notes->push_back(
      fmt::format("{} {} no layout rule and {} replicated: {}", count, matches, variables.size() == 1 ? "is" : "are", listed(variables)));
}

}  // namespace

void LayoutMap::insert(const std::string& key, TensorLayout layout, std::optional<int> rank) {
  const std::string where = fmt::format("layout rule '{}'", key);
  if (key.empty()) usage_error("a layout rule has an empty key", "", "give a variable's path or a regular expression");
  if (keys_.contains(key)) usage_error(where + " is given twice", "", "erase the first, or join them");
  if (rules_.size() == kMaxRules) usage_error(fmt::format("there are more than {} layout rules", kMaxRules), where, "join them into fewer");
  for (const DimAxes& dim : layout.dims())
    for (const std::string& name : dim.names) mesh_.axis(name, where);
  if (rank && layout.rank() > *rank)
    usage_error(fmt::format("layout {} of rank {} is longer than the rule's rank {}", to_string(layout), layout.rank(), *rank), where,
                "give at most one entry a dim");
  auto pattern = compile(key);
  const int64_t instructions = instructions_ + pattern->ProgramSize();
  if (instructions > kMaxInstructions)
    usage_error("the layout rules are too large together", where, "write fewer or simpler regular expressions");
  keys_.insert(key);
  rules_.push_back({key, std::move(layout), rank, std::move(pattern)});
  instructions_ = instructions;
}

void LayoutMap::erase(const std::string& key) {
  std::vector<std::string> keys;
  for (const LayoutRule& rule : rules_) keys.push_back(rule.key);
  auto found = std::find(keys.begin(), keys.end(), key);
  if (found == keys.end()) usage_error(fmt::format("there is no layout rule '{}' to erase", key), "", suggest(key, keys));
  keys_.erase(key);
  instructions_ -= rules_[static_cast<size_t>(found - keys.begin())].pattern->ProgramSize();
  rules_.erase(rules_.begin() + (found - keys.begin()));
}

const LayoutRule* LayoutMap::find(const std::string& path, std::optional<int> rank) const {
  const LayoutRule* first = nullptr;
  const LayoutRule* second = nullptr;
  for (const LayoutRule& rule : rules_) {
    if (!fits(rule, rank)) continue;
    if (rule.key == path) return &rule;
    if (RE2::FullMatch(path, *rule.pattern)) (first ? second : first) = &rule;
  }
  if (second)
    usage_error(fmt::format("two layout rules match variable '{}'", path), fmt::format("'{}' and '{}'", first->key, second->key),
                "make one of them narrower, or give the path itself as a key");
  return first;
}

Resolution LayoutMap::resolve(std::span<const VariableShape> variables, Unmatched unmatched) const {
  Resolution resolution;
  std::vector<const VariableShape*> unruled;
  for (const VariableShape& variable : variables) {
    ResolvedVariable resolved{variable.path, {}, {}, Sharding(variable.shape.rank())};
    TensorLayout layout;
    if (const LayoutRule* rule = find(variable.path, variable.shape.rank())) {
      resolved.rule = rule->key;
      resolved.sharding = espalier::bind(rule->layout, variable.shape, mesh_, rule_and_variable(*rule, variable.path));
      layout = rule->layout;
      warn_empty_shards(resolved, variable.shape, mesh_, &resolution.warnings);
    } else {
      unruled.push_back(&variable);
    }
    std::vector<DimAxes> dims = layout.dims();
    dims.resize(static_cast<size_t>(variable.shape.rank()));
    resolved.layout = TensorLayout(std::move(dims));
    resolution.variables.push_back(std::move(resolved));
  }
  check_rules_used(*this, variables, &resolution);
  check_ranks_agree(*this, variables, resolution);
  if (!rules_.empty() || unmatched == Unmatched::kRefuse) report_unmatched(unruled, unmatched, &resolution.notes);
  return resolution;
}

}  // namespace espalier

#pragma once
// Which variable is cut how: an insertion-ordered map from a key to a layout. A key is the path of a variable, or a regular expression that
// matches a *whole* path (RE2: linear time, so no key can hang). An exact path beats a regex; two regexes on one variable are refused.
// Everything is checked as early as it can be known: keys, axes and regexes on `insert`, the rest in `resolve`, before any allocation.
// A LayoutMap is a value; copies share the compiled keys. Reading one from a file is not here (cli/).
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/dims.h"
#include "espalier/mesh/device_mesh.h"
#include "espalier/mesh/sharding.h"
#include "espalier/mesh/tensor_layout.h"

namespace re2 {
class RE2;
}

namespace espalier {

struct LayoutRule {
  std::string key;
  TensorLayout layout;
  std::optional<int> rank;  // applies to variables of this rank only
  std::shared_ptr<const re2::RE2> pattern;
};

// A variable as the map sees it.
struct VariableShape {
  std::string path;
  Dims shape;
  int64_t element_bytes = 4;
};

struct ResolvedVariable {
  std::string path;
  TensorLayout layout;              // one entry a dim, as the user wrote it
  std::optional<std::string> rule;  // the key that matched; none: replicated
  Sharding sharding;                // the layout bound to the mesh
};

struct Resolution {
  std::vector<ResolvedVariable> variables;  // in the order asked
  std::vector<std::string> warnings;        // legal, probably not meant: cuts that leave empty shards, rules without effect
  std::vector<std::string> notes;           // variables that no rule matches, with their bytes
};

enum class Unmatched { kReplicate, kRefuse };

class LayoutMap {
 public:
  explicit LayoutMap(DeviceMesh mesh) : mesh_(std::move(mesh)) {}

  // rank: the rule is for variables of this rank and passes over others, e.g. kernels of rank 3 and not their low-rank additions.
  // Errors: an empty key, a key twice, a broken regex (with the position in it), an axis that the mesh does not have, a layout with more
  // entries than `rank`; more than 65,536 rules, or keys that compile to more than 16 MiB.
  void insert(const std::string& key, TensorLayout layout, std::optional<int> rank = std::nullopt);
  // An Error when there is no such key.
  void erase(const std::string& key);

  const DeviceMesh& mesh() const { return mesh_; }
  const std::vector<LayoutRule>& rules() const { return rules_; }  // in insertion order
  bool empty() const { return rules_.empty(); }
  size_t size() const { return rules_.size(); }
  auto begin() const { return rules_.begin(); }
  auto end() const { return rules_.end(); }

  // The rule for one path, null when there is none. rank: none means that limits of rank are not looked at.
  // An Error when two regexes match.
  const LayoutRule* find(const std::string& path, std::optional<int> rank = std::nullopt) const;

  // The layouts of all variables of a model. A layout shorter than the rank leaves the trailing dims whole.
  // Errors: a rule that matches no variable (the nearest path, or the key with which it would match, is named); two regexes on one
  // variable; a layout longer than the rank; a regex of two or more entries that fits some variables and is too short for others, since
  // nobody can tell which dims were meant; with kRefuse, a variable that no rule matches.
  Resolution resolve(std::span<const VariableShape> variables, Unmatched unmatched = Unmatched::kReplicate) const;

 private:
  DeviceMesh mesh_;
  std::vector<LayoutRule> rules_;
  std::set<std::string> keys_;  // of rules_
  int64_t instructions_ = 0;    // of the compiled keys
};

}  // namespace espalier

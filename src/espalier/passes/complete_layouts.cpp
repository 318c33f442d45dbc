#include "espalier/passes/complete_layouts.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "espalier/passes/reshard.h"

namespace espalier {
namespace {

// One byte received costs as much as one floating-point operation. Far too dear for the arithmetic of any real machine, on purpose:
// devices that repeat each other's arithmetic to save a message are what nobody expects of a split; communication decides between splits.
constexpr double kBytesPerFlop = 1.0;
constexpr int kMaxSweeps = 6;           // usually settled after two
constexpr size_t kMaxCandidates = 256;  // an op with 4 factors on a 3-axis mesh has at most 125

constexpr int kUncut = -1, kPass = -2;  // what an axis may do besides cutting a factor

// What resharding takes: the bytes received by the busiest device, and the cost that decides (reshard.h: it knows latency).
struct Traffic {
  int64_t bytes = 0, cost = 0;
  Traffic& operator+=(const Traffic& other) {
    bytes += other.bytes;
    cost += other.cost;
    return *this;
  }
};

constexpr Traffic kImpossible = {std::numeric_limits<int64_t>::max() / 4, std::numeric_limits<int64_t>::max() / 4};
// Whether a value holds sums pending over all these axes. A maximum or log-sum-exp pending over the same axis is another thing.
bool carries(const Sharding& held, AxisSet axes) { return held.reduction == Reduction::kSum && (held.pending & axes) == axes; }
Traffic halved(const Traffic& traffic) { return {traffic.bytes / 2, traffic.cost / 2}; }

// Traffic between shardings, remembered: the search asks the same question hundreds of times.
class ReshardTraffic {
 public:
  explicit ReshardTraffic(const DeviceMesh& mesh) : mesh_(mesh) {}
  Traffic operator()(const Sharding& from, const Sharding& to, const TensorType& type) {
    if (from == to) return {};
    auto [at, fresh] = known_.try_emplace(Key{from, to, type.shape});
    if (fresh)
      for (const Move& move : plan_moves(from, to, type, mesh_))
        at->second += {move_bytes(move, type, mesh_), move_cost(move, type, mesh_)};
    return at->second;
  }

 private:
  struct Key {
    Sharding from, to;
    Dims shape;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      size_t hash = ShardingHash()(key.from) * 31 + ShardingHash()(key.to);
      for (int64_t size : key.shape) hash = hash * 1099511628211ull + static_cast<size_t>(size);
      return hash;
    }
  };
  const DeviceMesh& mesh_;
  std::unordered_map<Key, Traffic, Hash> known_;
};

class LayoutSearch {
 public:
  LayoutSearch(const Graph& graph, const DeviceMesh& mesh, const Pins& pins);
  void run();
  void adopt(const LayoutPlan& plan);  // takes decisions over instead of searching
  LayoutPlan plan() const { return {layouts_}; }
  std::vector<Alternative> priced_candidates(int op);
  double flops() const;  // of all ops as decided

 private:
  using Need = std::pair<ValueId, Sharding>;

  std::vector<OpLayout> candidates(int op) const;
  std::vector<int> axis_options(int op, int axis) const;
  OpLayout assemble(int op, const std::vector<int>& axes, const std::vector<int>& choice) const;
  bool legal(int op, const OpLayout& layout) const;
  std::vector<Sharding> wanted(ValueId value, int except_op) const;
  Traffic traffic(int op, const OpLayout& layout);
  double flops(int op, const OpLayout& layout) const;
  double price(int op, const OpLayout& layout) { return static_cast<double>(traffic(op, layout).cost) + kBytesPerFlop * flops(op, layout); }
  void decide(int op, const OpLayout& layout);
  bool improve(int op);

  const Graph& graph_;
  const DeviceMesh& mesh_;
  ReshardTraffic traffic_;
  std::vector<FactorRule> rules_;
  std::vector<double> total_flops_;
  std::vector<Sharding> sharding_;                           // of each value, as produced
  std::vector<std::vector<std::pair<int, int>>> consumers_;  // of each value: (op, operand)
  std::vector<std::vector<Sharding>> pinned_;                // of each value: what the outputs want
  std::vector<OpLayout> layouts_;
  std::vector<bool> decided_;
};

LayoutSearch::LayoutSearch(const Graph& graph, const DeviceMesh& mesh, const Pins& pins)
    : graph_(graph),
      mesh_(mesh),
      traffic_(mesh),
      sharding_(graph.values.size()),
      consumers_(graph.values.size()),
      pinned_(graph.values.size()),
      layouts_(graph.ops.size()),
      decided_(graph.ops.size(), false) {
  ESPALIER_ASSERT(pins.inputs.size() == graph.inputs.size() && pins.outputs.size() == graph.outputs.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i) sharding_[static_cast<size_t>(graph.inputs[i].value)] = pins.inputs[i];
  for (size_t i = 0; i < graph.outputs.size(); ++i) pinned_[static_cast<size_t>(graph.outputs[i].value)].push_back(pins.outputs[i]);
  for (size_t o = 0; o < graph.ops.size(); ++o) {
    const Op& op = graph.ops[o];
    std::vector<TensorType> types = operand_types(graph, op);
    OpSignature signature{op.attrs, types, op.scope};
    rules_.push_back(rule_of(*op.def, signature));
    double elements = 0;
    for (ValueId id : op.results) elements = std::max(elements, static_cast<double>(graph.type(id).shape.volume()));
    for (const TensorType& type : types) elements = std::max(elements, static_cast<double>(type.shape.volume()));
    total_flops_.push_back(op.def->flops != nullptr ? op.def->flops(signature) : op.def->view ? 0 : elements);
    for (size_t i = 0; i < op.operands.size(); ++i)
      consumers_[static_cast<size_t>(op.operands[i])].emplace_back(static_cast<int>(o), static_cast<int>(i));
  }
}

// The forms in which everybody but one op wants a value, without repetition.
std::vector<Sharding> LayoutSearch::wanted(ValueId value, int except_op) const {
  std::vector<Sharding> forms;
  auto add = [&](const Sharding& form) {
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
  };
  for (const Sharding& pin : pinned_[static_cast<size_t>(value)]) add(pin);
  for (auto [op, operand] : consumers_[static_cast<size_t>(value)])
    if (op != except_op && decided_[static_cast<size_t>(op)])
      add(needed_sharding(rules_[static_cast<size_t>(op)], layouts_[static_cast<size_t>(op)], operand));
  return forms;
}

// The factors that an axis may cut: those it already cuts in an operand, or that somebody wants to see cut in a result.
std::vector<int> LayoutSearch::axis_options(int op, int axis) const {
  const Op& node = graph_.ops[static_cast<size_t>(op)];
  const FactorRule& rule = rules_[static_cast<size_t>(op)];
  std::vector<int> options = {kUncut};
  auto offer = [&](int option) {
    if (std::find(options.begin(), options.end(), option) == options.end()) options.push_back(option);
  };
  auto offer_cuts = [&](const FactorTensor& tensor, const Sharding& sharding) {
    for (size_t d = 0; d < tensor.size(); ++d)
      if (!tensor[d].empty() && (sharding.dims[d].set() >> axis & 1)) offer(tensor[d].front());
  };
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Sharding& held = sharding_[static_cast<size_t>(node.operands[i])];
    offer_cuts(rule.operands[i], held);
    if (node.def->linearity != Linearity::kNone && carries(held, AxisSet{1} << axis)) offer(kPass);
    // Replicas need not all repeat an update: each may add up and update a part.
    if (node.phase == Phase::kUpdate && carries(held, AxisSet{1} << axis))
      if (const int d = first_whole_dim(held, graph_.type(node.operands[i]).shape, mesh_.shape()[static_cast<size_t>(axis)]); d >= 0)
        offer(rule.operands[i][static_cast<size_t>(d)].front());
  }
  for (size_t r = 0; r < node.results.size(); ++r)
    for (const Sharding& form : wanted(node.results[r], op)) offer_cuts(rule.results[r], form);
  return options;
}

// From "what each axis does" to an OpLayout. Several axes on one factor keep the order in which an operand or a consumer has them.
OpLayout LayoutSearch::assemble(int op, const std::vector<int>& axes, const std::vector<int>& choice) const {
  const Op& node = graph_.ops[static_cast<size_t>(op)];
  const FactorRule& rule = rules_[static_cast<size_t>(op)];
  OpLayout layout{Split(rule.factors.size()), 0, -1};
  for (size_t a = 0; a < axes.size(); ++a) {
    if (choice[a] >= 0) layout.split[static_cast<size_t>(choice[a])].push_back(axes[a]);
    if (choice[a] == kPass) layout.pass |= AxisSet{1} << axes[a];
  }
  auto keep_order = [&](const FactorTensor& tensor, const Sharding& sharding) {
    for (size_t d = 0; d < tensor.size(); ++d) {
      if (tensor[d].empty()) continue;
      AxisList& cut = layout.split[static_cast<size_t>(tensor[d].front())];
      if (cut.size() > 1 && cut.set() == sharding.dims[d].set()) cut = sharding.dims[d];
    }
  };
  for (size_t r = 0; r < node.results.size(); ++r)
    for (const Sharding& form : wanted(node.results[r], op)) keep_order(rule.results[r], form);
  for (size_t i = 0; i < node.operands.size(); ++i) keep_order(rule.operands[i], sharding_[static_cast<size_t>(node.operands[i])]);
  if (layout.pass != 0 && node.def->linearity == Linearity::kEach)
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const std::vector<int>& linear = node.def->linear_operands;
      bool may = linear.empty() || std::find(linear.begin(), linear.end(), static_cast<int>(i)) != linear.end();
      if (may && carries(sharding_[static_cast<size_t>(node.operands[i])], layout.pass)) layout.carrier = static_cast<int>(i);
    }
  return layout;
}

bool LayoutSearch::legal(int op, const OpLayout& layout) const {
  const Op& node = graph_.ops[static_cast<size_t>(op)];
  const FactorRule& rule = rules_[static_cast<size_t>(op)];
  for (size_t f = 0; f < layout.split.size(); ++f)
    if (!layout.split[f].empty() && !can_split(rule, static_cast<int>(f), part_count(layout.split[f], mesh_))) return false;
  if (layout.pass == 0) return true;
  if (rule.reduction != Reduction::kSum) return false;
  if (node.def->linearity == Linearity::kEach) return layout.carrier >= 0;
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ValueId id) { return carries(sharding_[static_cast<size_t>(id)], layout.pass); });
}

std::vector<OpLayout> LayoutSearch::candidates(int op) const {
  std::vector<int> axes;
  std::vector<std::vector<int>> options;
  for (int a = 0; a < mesh_.axis_count(); ++a) {
    std::vector<int> able = mesh_.shape()[static_cast<size_t>(a)] > 1 ? axis_options(op, a) : std::vector<int>{};
    if (able.size() < 2) continue;
    axes.push_back(a);
    options.push_back(std::move(able));
  }
  std::vector<OpLayout> all;
  std::vector<size_t> at(axes.size(), 0);
  while (all.size() < kMaxCandidates) {
    std::vector<int> choice;
    for (size_t a = 0; a < axes.size(); ++a) choice.push_back(options[a][at[a]]);
    OpLayout layout = assemble(op, axes, choice);
    if (legal(op, layout)) all.push_back(std::move(layout));
    size_t digit = 0;
    while (digit < at.size() && ++at[digit] == options[digit].size()) at[digit++] = 0;
    if (digit == at.size()) break;
  }
  return all;
}

// What this op's layout causes: operands brought into form (unless somebody else asks for the same form), results into those wanted.
Traffic LayoutSearch::traffic(int op, const OpLayout& layout) {
  const Op& node = graph_.ops[static_cast<size_t>(op)];
  const FactorRule& rule = rules_[static_cast<size_t>(op)];
  Traffic sum;
  std::vector<Need> asked;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    Need need{node.operands[i], needed_sharding(rule, layout, static_cast<int>(i))};
    if (std::find(asked.begin(), asked.end(), need) != asked.end()) continue;
    asked.push_back(need);
    const Sharding& held = sharding_[static_cast<size_t>(need.first)];
    if (held == need.second) continue;
    std::vector<Sharding> others = wanted(need.first, op);
    if (std::find(others.begin(), others.end(), need.second) == others.end()) sum += traffic_(held, need.second, graph_.type(need.first));
  }
  for (size_t r = 0; r < node.results.size(); ++r) {
    Sharding made = produced_sharding(rule, layout, static_cast<int>(r));
    const TensorType& type = graph_.type(node.results[r]);
    std::vector<Sharding> forms = wanted(node.results[r], op);
    for (const Sharding& form : forms) {
      if ((form.pending & ~made.pending) != 0) return kImpossible;  // a consumer counts on this sum being pending
      sum += traffic_(made, form, type);
    }
    if (forms.empty() && made.pending != 0) {  // nobody has asked yet; at the least it will be reduce-scattered
      Sharding whole = made;
      whole.pending = 0;
      whole.reduction = Reduction::kSum;
      sum += halved(traffic_(made, whole, type));
    }
  }
  return sum;
}

double LayoutSearch::flops(int op, const OpLayout& layout) const {
  const FactorRule& rule = rules_[static_cast<size_t>(op)];
  double flops = total_flops_[static_cast<size_t>(op)];
  for (size_t f = 0; f < layout.split.size(); ++f) {
    if (layout.split[f].empty() || rule.factors[f].size == 0) continue;
    int64_t parts = part_count(layout.split[f], mesh_);
    flops *= static_cast<double>(part(rule.factors[f].size, parts, 0).size) / static_cast<double>(rule.factors[f].size);
  }
  return flops;
}

void LayoutSearch::decide(int op, const OpLayout& layout) {
  layouts_[static_cast<size_t>(op)] = layout;
  decided_[static_cast<size_t>(op)] = true;
  const Op& node = graph_.ops[static_cast<size_t>(op)];
  for (size_t r = 0; r < node.results.size(); ++r)
    sharding_[static_cast<size_t>(node.results[r])] = produced_sharding(rules_[static_cast<size_t>(op)], layout, static_cast<int>(r));
}

// Takes the cheapest candidate; true when that changed anything. An equal price keeps the present layout, so that sweeps end.
bool LayoutSearch::improve(int op) {
  bool had = decided_[static_cast<size_t>(op)];
  OpLayout best = layouts_[static_cast<size_t>(op)];
  double best_price = had ? price(op, best) : std::numeric_limits<double>::infinity();
  bool changed = false;
  for (const OpLayout& candidate : candidates(op)) {
    double candidate_price = price(op, candidate);
    if (candidate_price < best_price) best = candidate, best_price = candidate_price, changed = true;
  }
  if (changed) decide(op, best);
  return changed;
}

void LayoutSearch::run() {
  int count = static_cast<int>(graph_.ops.size());
  bool changed = true;
  for (int sweep = 0; sweep < kMaxSweeps && changed; ++sweep) {
    changed = false;
    for (int i = 0; i < count; ++i) changed |= improve(sweep % 2 == 0 ? i : count - 1 - i);
  }
}

void LayoutSearch::adopt(const LayoutPlan& plan) {
  for (size_t op = 0; op < plan.ops.size(); ++op) decide(static_cast<int>(op), plan.ops[op]);
}

std::vector<Alternative> LayoutSearch::priced_candidates(int op) {
  const Op& node = graph_.ops[static_cast<size_t>(op)];
  const FactorRule& rule = rules_[static_cast<size_t>(op)];
  const OpLayout chosen = layouts_[static_cast<size_t>(op)];
  std::vector<std::pair<double, Alternative>> priced;
  for (const OpLayout& layout : candidates(op)) {
    Alternative alternative{layout, {}, {}, traffic(op, layout).bytes, flops(op, layout), 0, price(op, layout)};
    for (size_t i = 0; i < node.operands.size(); ++i) alternative.operands.push_back(needed_sharding(rule, layout, static_cast<int>(i)));
    for (size_t r = 0; r < node.results.size(); ++r) {
      alternative.results.push_back(produced_sharding(rule, layout, static_cast<int>(r)));
      const TensorType& type = graph_.type(node.results[r]);
      alternative.result_bytes += local_shape(alternative.results.back(), type.shape, mesh_, 0).volume() * size_of(type.dtype);
    }
    double rank = layout == chosen ? -1 : alternative.price;
    priced.emplace_back(rank, std::move(alternative));
  }
  std::stable_sort(priced.begin(), priced.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Alternative> all;
  for (auto& [rank, alternative] : priced) all.push_back(std::move(alternative));
  return all;
}

double LayoutSearch::flops() const {
  double sum = 0;
  for (size_t op = 0; op < layouts_.size(); ++op) sum += flops(static_cast<int>(op), layouts_[op]);
  return sum;
}

}  // namespace

Sharding needed_sharding(const FactorRule& rule, const OpLayout& layout, int operand) {
  Sharding sharding = operand_sharding(rule, operand, layout.split);
  if (layout.carrier < 0 || layout.carrier == operand) sharding.pending = layout.pass;
  return sharding;
}

Sharding produced_sharding(const FactorRule& rule, const OpLayout& layout, int result) {
  Sharding sharding = result_sharding(rule, result, layout.split);
  sharding.pending |= layout.pass;
  return sharding;
}

LayoutPlan complete_layouts(const Graph& graph, const DeviceMesh& mesh, const Pins& pins) {
  LayoutSearch search(graph, mesh, pins);
  search.run();
  return search.plan();
}

std::vector<Alternative> alternatives(const Graph& graph, const DeviceMesh& mesh, const Pins& pins, const LayoutPlan& plan, int op) {
  LayoutSearch search(graph, mesh, pins);
  search.adopt(plan);
  return search.priced_candidates(op);
}

double largest_flops(const Graph& graph, const DeviceMesh& mesh, const Pins& pins, const LayoutPlan& plan) {
  LayoutSearch search(graph, mesh, pins);
  search.adopt(plan);
  return search.flops();
}

}  // namespace espalier

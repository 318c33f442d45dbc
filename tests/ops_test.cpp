// Uses: passes
// The shared op test. It takes every op in the table with every sample it states, and checks the op's value against a slow reference, its
// gradient against finite differences of that reference, its text form, its claims (linearity, in place), and every legal split of every
// factor, alone and in pairs, even and uneven, on 1 to 8 devices, forward and backward, against the whole. An op without samples or
// reference fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>

#include "espalier/ir/text.h"
#include "espalier/passes/autodiff.h"
#include "op_harness.h"
#include "op_reference.h"

namespace espalier::test {
namespace {

uint64_t seed = 20240607;
int64_t cases = 0;
std::set<std::string> covered;

Arrays arrays_of(const Tensors& tensors) {
  Arrays arrays;
  for (const Tensor& tensor : tensors) {
    arrays.emplace_back(tensor.type.shape);
    for (int64_t i = 0; i < tensor.size(); ++i) arrays.back()[i] = tensor.at(i);
  }
  return arrays;
}

Arrays reference_of(const OpDef& def, const Attrs& attrs, const Tensors& operands) {
  std::vector<Dims> shapes;
  std::vector<TensorType> types = types_of(operands);
  for (const TensorType& type : result_types(def, {attrs, types, def.name})) shapes.push_back(type.shape);
  return references().at(def.name)(attrs, arrays_of(operands), shapes);
}

// --- one op on one device -------------------------------------------------------------------------------------------------------------

void check_values(const OpDef& def, const OpSample& sample, const Tensors& operands) {
  Tensors got = run_whole(def, sample.attrs, operands);
  Arrays want = reference_of(def, sample.attrs, operands);
  ASSERT_EQ(got.size(), want.size());
  for (size_t r = 0; r < got.size(); ++r) {
    ASSERT_EQ(got[r].type.shape, want[r].shape);
    for (int64_t i = 0; i < got[r].size(); ++i)
      ASSERT_TRUE(close(got[r].at(i), want[r][i], 1e-5))
          << "result " << r << " element " << i << ": " << got[r].at(i) << " instead of " << want[r][i];
  }
  ++cases;
}

bool has_gradient(const OpDef& def, size_t operand, const Tensors& operands) {
  return operands[operand].type.dtype == DType::kF32 &&
         std::find(def.no_grad_operands.begin(), def.no_grad_operands.end(), static_cast<int>(operand)) == def.no_grad_operands.end();
}

// A graph whose loss is the op's results against random weights, and the gradients of the operands.
struct GradientGraph {
  Graph graph;
  ValueId loss = kNoValue;
  std::vector<ValueId> gradients;  // one entry an operand
  Tensors inputs;                  // operands, then weights
  size_t operands = 0;
};

GradientGraph gradient_graph(const OpDef& def, const OpSample& sample, const Tensors& operands, std::mt19937_64& random) {
  GradientGraph g{.graph = {}, .gradients = {}, .inputs = operands, .operands = operands.size()};
  Builder builder(g.graph);
  std::vector<ValueId> ids, wrt;
  for (size_t i = 0; i < operands.size(); ++i) {
    ids.push_back(g.graph.add_input(Role::kData, fmt::format("x{}", i), operands[i].type));
    if (has_gradient(def, i, operands)) wrt.push_back(ids.back());
  }
  std::vector<ValueId> results = builder.ops(def.name, ids, sample.attrs);
  for (ValueId result : results) {
    const TensorType type = g.graph.type(result);
    Tensor weights(type);
    for (int64_t i = 0; i < weights.size(); ++i) weights.set(i, std::uniform_real_distribution<double>(-1, 1)(random));
    g.inputs.push_back(weights);
    ValueId product = builder.op("multiply", {result, g.graph.add_input(Role::kData, fmt::format("p{}", ids.size()), type)});
    std::vector<int64_t> dims;
    for (int d = 0; d < type.shape.rank(); ++d) dims.push_back(d);
    ValueId sum = builder.op("reduce_sum", {product}, {{"dims", dims}, {"keep", int64_t{0}}});
    g.loss = g.loss == kNoValue ? sum : builder.op("add", {g.loss, sum});
  }
  std::vector<ValueId> gradients = differentiate(g.graph, g.loss, wrt);
  g.gradients.assign(operands.size(), kNoValue);
  for (size_t w = 0, i = 0; i < operands.size(); ++i)
    if (has_gradient(def, i, operands)) g.gradients[i] = gradients[w++];
  for (ValueId gradient : g.gradients)
    if (gradient != kNoValue) g.graph.add_output(Role::kGradient, fmt::format("g{}", gradient), gradient);
  g.graph.add_output(Role::kResult, "loss", g.loss);
  return g;
}

double reference_loss(const OpDef& def, const OpSample& sample, Tensors operands, const GradientGraph& g) {
  prepare(sample, operands);
  Arrays results = reference_of(def, sample.attrs, operands);
  double loss = 0;
  for (size_t r = 0; r < results.size(); ++r)
    for (int64_t i = 0; i < results[r].size(); ++i) loss += results[r][i] * g.inputs[g.operands + r].at(i);
  return loss;
}

void check_gradient(const OpDef& def, const OpSample& sample, const GradientGraph& g, const std::vector<Tensor>& values) {
  // Operands that follow from others are float32, and so is their error: a wider step there.
  const double step = sample.prepare == nullptr ? 1e-3 : 1e-2, tolerance = sample.prepare == nullptr ? 2e-4 : 2e-3;
  Tensors operands(g.inputs.begin(), g.inputs.begin() + static_cast<std::ptrdiff_t>(g.operands));
  for (size_t o = 0; o < operands.size(); ++o) {
    if (!has_gradient(def, o, operands)) continue;
    for (int64_t i = 0; i < operands[o].size(); ++i) {
      Tensors above = operands, below = operands;
      above[o].set(i, operands[o].at(i) + step);
      below[o].set(i, operands[o].at(i) - step);
      double slope = (reference_loss(def, sample, above, g) - reference_loss(def, sample, below, g)) / (above[o].at(i) - below[o].at(i));
      double got = g.gradients[o] == kNoValue ? 0 : values[static_cast<size_t>(g.gradients[o])].at(i);
      ASSERT_TRUE(close(got, slope, tolerance))
          << "gradient of operand " << o << " at " << i << " is " << got << ", finite differences say " << slope;
    }
    ++cases;
  }
}

void check_text(const Graph& graph) {
  std::string text = print(graph);
  Graph parsed;
  ASSERT_NO_THROW(parsed = parse_graph(text)) << text;
  ASSERT_EQ(print(parsed), text);
  ASSERT_EQ(parsed.ops.size(), graph.ops.size());
  for (size_t o = 0; o < graph.ops.size(); ++o) {
    ASSERT_EQ(parsed.ops[o].def, graph.ops[o].def);
    ASSERT_EQ(operand_types(parsed, parsed.ops[o]), operand_types(graph, graph.ops[o]));
  }
  ++cases;
}

Tensors sum_of(const Tensors& a, const Tensors& b, const std::vector<bool>& added) {
  Tensors sum = a;
  for (size_t i = 0; i < a.size(); ++i)
    for (int64_t e = 0; added[i] && e < a[i].size(); ++e) sum[i].set(e, a[i].at(e) + b[i].at(e));
  return sum;
}

// f(a + b) = f(a) + f(b), where only the operands in `together` differ.
void check_linear(const OpDef& def, const Attrs& attrs, const Tensors& a, Tensors b, const std::vector<bool>& together) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!together[i]) b[i] = a[i];
  Tensors whole = run_whole(def, attrs, sum_of(a, b, together)), left = run_whole(def, attrs, a), right = run_whole(def, attrs, b);
  for (size_t r = 0; r < whole.size(); ++r)
    for (int64_t e = 0; e < whole[r].size(); ++e)
      ASSERT_TRUE(close(left[r].at(e) + right[r].at(e), whole[r].at(e), 1e-5, 4))
          << "not linear: " << left[r].at(e) + right[r].at(e) << " and " << whole[r].at(e);
  ++cases;
}

void check_linearity(const OpDef& def, const Attrs& attrs, const Tensors& a, const Tensors& b) {
  if (def.linearity == Linearity::kJoint) {
    std::vector<bool> all;
    for (const Tensor& tensor : a) all.push_back(tensor.type.dtype == DType::kF32);
    check_linear(def, attrs, a, b, all);
  } else if (def.linearity == Linearity::kEach) {
    for (int i = 0; i < static_cast<int>(a.size()); ++i) {
      if (!def.linear_operands.empty() && std::find(def.linear_operands.begin(), def.linear_operands.end(), i) == def.linear_operands.end())
        continue;
      std::vector<bool> one(a.size(), false);
      one[static_cast<size_t>(i)] = true;
      check_linear(def, attrs, a, b, one);
    }
  }
}

void check_in_place(const OpDef& def, const Attrs& attrs, const Tensors& operands) {
  Tensors want = run_whole(def, attrs, operands);
  for (int i = 0; i < static_cast<int>(operands.size()); ++i)
    for (int r = 0; r < static_cast<int>(want.size()); ++r) {
      bool stated = r == 0 && std::find(def.in_place.begin(), def.in_place.end(), i) != def.in_place.end();
      if (!(def.elementwise() || def.elementwise_body || stated)) continue;
      if (!(operands[static_cast<size_t>(i)].type.shape == want[static_cast<size_t>(r)].type.shape)) continue;
      Tensors got = run_op(def, whole_op(def, attrs, operands), operands, i, r);
      ASSERT_EQ(got, want) << "result " << r << " in the buffer of operand " << i;
      ++cases;
    }
}

// --- one op on a mesh -----------------------------------------------------------------------------------------------------------------

double combine(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::kSum:
      return a + b;
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kLogSumExp:
      return log_add(a, b);
  }
  return 0;
}

int64_t pending_part(const Sharding& sharding, const DeviceMesh& mesh, int64_t device) {
  int64_t part = 0;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (sharding.pending >> axis & 1) part = part * mesh.shape()[static_cast<size_t>(axis)] + mesh.coordinate(device, axis);
  return part;
}

// Puts the devices' results together: replicas have to agree in bits, pending parts are combined.
Tensor assemble(const std::vector<Tensor>& parts, const Sharding& sharding, const TensorType& type, const DeviceMesh& mesh) {
  Tensor whole(type);
  std::map<std::pair<std::vector<int64_t>, int64_t>, int64_t> first;  // where a box begins and its pending part -> the device that has it
  std::vector<bool> written(whole.words.size());
  for (int64_t device = 0; device < mesh.size(); ++device) {
    const Tensor& part = parts[static_cast<size_t>(device)];
    Box box = shard_box(sharding, type.shape, mesh, device);
    EXPECT_EQ(part.type.shape, box.shape);
    std::vector<int64_t> key = box.offset.vector();
    for (int64_t size : box.shape) key.push_back(size);
    auto [found, is_new] = first.emplace(std::pair(key, pending_part(sharding, mesh, device)), device);
    if (!is_new) {
      EXPECT_EQ(part, parts[static_cast<size_t>(found->second)])
          << "replicas on devices " << found->second << " and " << device << " differ";
      continue;
    }
    visit_box(box, type.shape, [&](int64_t i, int64_t at) {
      auto w = static_cast<size_t>(at);
      if (written[w] && sharding.pending != 0)
        whole.set(at, combine(sharding.reduction, whole.at(at), part.at(i)));
      else
        whole.words[w] = part.words[static_cast<size_t>(i)];
      EXPECT_TRUE(!written[w] || sharding.pending != 0) << "two devices hold element " << at;
      written[w] = true;
    });
  }
  EXPECT_TRUE(std::all_of(written.begin(), written.end(), [](bool w) { return w; })) << "an element is on no device";
  return whole;
}

class SplitCheck {
 public:
  SplitCheck(const OpDef& def, const Attrs& attrs, const Tensors& operands)
      : def_(def),
        attrs_(attrs),
        operands_(operands),
        types_(types_of(operands)),
        rule_(rule_of(def, {attrs, types_, def.name})),
        result_types_(result_types(def, {attrs, types_, def.name})),
        want_(run_whole(def, attrs, operands)) {}

  void all() {
    for (int64_t devices = 1; devices <= 8; ++devices) {
      DeviceMesh mesh(devices, "x");
      for (int f = 0; f < factors(); ++f)
        if (can_split(rule_, f, devices)) check(mesh, {{f, {0}}});
    }
    for (int64_t second : {2, 3, 4}) {
      DeviceMesh mesh({2, second}, {"x", "y"});
      for (int f = 0; f < factors(); ++f) {
        for (int g = 0; g < factors(); ++g)
          if (f != g && can_split(rule_, f, 2) && can_split(rule_, g, second)) check(mesh, {{f, {0}}, {g, {1}}});
        if (!can_split(rule_, f, 2 * second)) continue;
        check(mesh, {{f, {0, 1}}});
        check(mesh, {{f, {1, 0}}});
      }
    }
  }

 private:
  int factors() const { return static_cast<int>(rule_.factors.size()); }

  void check(const DeviceMesh& mesh, const std::vector<std::pair<int, std::vector<int>>>& cuts) {
    Split split(rule_.factors.size());
    std::string name = def_.name + " on " + to_string(mesh);
    for (const auto& [factor, axes] : cuts)
      for (int axis : axes) {
        if (mesh.shape()[static_cast<size_t>(axis)] > 1) split[static_cast<size_t>(factor)].push_back(axis);
        name += fmt::format(", factor {} (size {}) by axis {}", factor, rule_.factors[static_cast<size_t>(factor)].size, axis);
      }
    SCOPED_TRACE(name);
    std::vector<Tensors> results(want_.size());
    for (int64_t device = 0; device < mesh.size(); ++device) {
      Tensors local = run_device(mesh, split, device);
      for (size_t r = 0; r < local.size(); ++r) results[r].push_back(local[r]);
    }
    for (size_t r = 0; r < results.size(); ++r) {
      Sharding sharding = result_sharding(rule_, static_cast<int>(r), split);
      bool exact = sharding.pending == 0 && (def_.elementwise() || def_.elementwise_body || def_.random || def_.any_dtype);
      EXPECT_EQ(difference(assemble(results[r], sharding, result_types_[r], mesh), want_[r], 1e-5, exact), "");
    }
    ++cases;
  }

  LocalTensor local(const TensorType& type, const Sharding& sharding, const DeviceMesh& mesh, int64_t device) const {
    Box box = shard_box(sharding, type.shape, mesh, device);
    return {type.dtype, box.shape, box.offset, type.shape};
  }

  Tensors run_device(const DeviceMesh& mesh, const Split& split, int64_t device) const {
    LocalOp op{.attrs = &attrs_, .operands = {}, .results = {}};
    Tensors parts;
    for (size_t i = 0; i < operands_.size(); ++i) {
      op.operands.push_back(local(types_[i], operand_sharding(rule_, static_cast<int>(i), split), mesh, device));
      parts.push_back(cut(operands_[i], {op.operands.back().offset, op.operands.back().shape}));
    }
    for (size_t r = 0; r < result_types_.size(); ++r)
      op.results.push_back(local(result_types_[r], result_sharding(rule_, static_cast<int>(r), split), mesh, device));
    return run_op(def_, op, parts);
  }

  const OpDef& def_;
  const Attrs& attrs_;
  const Tensors& operands_;
  std::vector<TensorType> types_;
  FactorRule rule_;
  std::vector<TensorType> result_types_;
  Tensors want_;
};

// Every op of a graph under its own splits, with the operands it meets there. `seen` keeps what was already checked: the same sums and
// products end up in many gradients.
void check_graph_splits(const Graph& graph, const std::vector<Tensor>& values, std::set<std::string>& seen) {
  for (const Op& op : graph.ops) {
    Graph alone;
    Op copy{.def = op.def, .attrs = op.attrs};
    Tensors operands;
    for (ValueId id : op.operands) {
      copy.operands.push_back(alone.add_input(Role::kData, "", graph.type(id)));
      operands.push_back(values[static_cast<size_t>(id)]);
    }
    alone.append(copy);
    if (op.def->operand_count != 0 && seen.insert(print(alone)).second) SplitCheck(*op.def, op.attrs, operands).all();
  }
}

class EveryOp : public testing::TestWithParam<const OpDef*> {};

TEST_P(EveryOp, HoldsWhatItStates) {
  const OpDef& def = *GetParam();
  static std::set<std::string> seen;
  std::vector<OpSample> samples = samples_of(def);
  ASSERT_FALSE(samples.empty()) << "op '" << def.name << "' has no samples: state some in its file";
  ASSERT_TRUE(references().count(def.name)) << "op '" << def.name << "' has no reference: write one in tests/op_reference.h";
  std::mt19937_64 random(seed);
  for (const OpSample& sample : samples) {
    std::string shapes;
    for (const Dims& shape : sample.operands) shapes += to_string(shape) + " ";
    SCOPED_TRACE("sample " + shapes + "seed " + std::to_string(seed));
    Tensors operands = draw(sample, def, random), others = draw(sample, def, random);
    prepare(sample, operands);
    check_values(def, sample, operands);
    check_linearity(def, sample.attrs, operands, others);
    check_in_place(def, sample.attrs, operands);
    SplitCheck(def, sample.attrs, operands).all();
    if (def.grad != nullptr) {
      GradientGraph g = gradient_graph(def, sample, operands, random);
      std::vector<Tensor> values = run_graph(g.graph, g.inputs);
      check_gradient(def, sample, g, values);
      check_text(g.graph);
      check_graph_splits(g.graph, values, seen);
    } else {
      Graph graph;
      std::vector<ValueId> ids;
      for (const Tensor& operand : operands) ids.push_back(graph.add_input(Role::kData, "", operand.type));
      for (ValueId result : Builder(graph).ops(def.name, ids, sample.attrs)) graph.add_output(Role::kResult, "", result);
      check_text(graph);
    }
    if (HasFatalFailure()) return;
  }
  covered.insert(def.name);
}

std::vector<const OpDef*> tested_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* def : all_ops())
    if (!def->collective) ops.push_back(def);  // tested with the communicator
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(tested_ops()), [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace espalier::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string(argv[i]) == "--seed") espalier::test::seed = std::strtoull(argv[i + 1], nullptr, 10);
  int status = RUN_ALL_TESTS();
  std::cout << fmt::format("ops_test: {} cases over {} ops, seed {}\n", espalier::test::cases, espalier::test::covered.size(),
                           espalier::test::seed);
  return status;
}

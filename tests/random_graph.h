#pragma once
// Random training-step-like graphs for tests of passes: elementwise chains with broadcasts and constants, products, reductions, views,
// updates of state at any place, outputs of every role. Values stay small, so that results compare within a few units in the last place.
#include <random>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"

namespace espalier {

enum class Views { kSome, kNone };    // kNone where values get shardings, which a view would have to share
enum class Updates { kSome, kNone };  // kNone where the graph is to be differentiated
enum class Kinds { kFew, kMany };     // kMany: also other reductions, windows, transposes, softmax

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed, int64_t n = 5, Views views = Views::kSome, Kinds kinds = Kinds::kFew,
                       Updates updates = Updates::kSome)
      : random_(seed), n_(n), views_(views), kinds_(kinds), updates_(updates), builder_(graph_) {}

  Graph make(int ops) {
    for (const char* name : {"w0", "w1", "w2"}) variables_.push_back(input(Role::kVariable, name, {n_, n_}));
    variables_.push_back(input(Role::kOptimizer, "m", {n_, n_}));
    for (const char* name : {"x0", "x1"}) squares_.push_back(input(Role::kData, name, {n_, n_}));
    squares_.insert(squares_.end(), variables_.begin(), variables_.end());
    rows_.push_back(input(Role::kData, "b", {n_}));
    scalars_.push_back(input(Role::kScalar, "s", {}));
    for (int o = 0; o < ops; ++o) {
      builder_.phase = o < ops / 2 ? Phase::kForward : Phase::kBackward;
      step();
    }
    finish();
    return std::move(graph_);
  }

 private:
  ValueId input(Role role, const std::string& name, Dims shape) { return graph_.add_input(role, name, {DType::kF32, shape}); }
  int upto(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  // Late values are likelier, so that chains form.
  ValueId any(const std::vector<ValueId>& pool) {
    int size = static_cast<int>(pool.size());
    return pool[static_cast<size_t>(std::max(upto(size), std::max(upto(size), size - 1 - upto(8))))];
  }
  ValueId operand() {
    switch (upto(6)) {
      case 0:
        return any(rows_);
      case 1:
        return any(scalars_);
      case 2:
        return builder_.op("constant", {}, {{"value", 0.25 * (1 + upto(4))}});
      default:
        return any(squares_);
    }
  }

  void step() {
    static const std::vector<std::string> unary = {"tanh", "sigmoid", "relu", "negate", "abs"},
                                          binary = {"add", "multiply", "maximum", "greater"};
    switch (upto(kinds_ == Kinds::kMany ? 20 : 12)) {
      case 0:
      case 1:
      case 2:
        squares_.push_back(builder_.op(unary[static_cast<size_t>(upto(5))], {any(squares_)}));
        break;
      case 3:
      case 4:
      case 5:
      case 6:
        squares_.push_back(bounded(builder_.op(binary[static_cast<size_t>(upto(4))], {any(squares_), operand()})));
        break;
      case 7:
        rows_.push_back(
            builder_.op("tanh", {builder_.op("reduce_sum", {any(squares_)}, {{"dims", std::vector<int64_t>{0}}, {"keep", int64_t{0}}})}));
        break;
      case 8:
        scalars_.push_back(builder_.op("multiply", {any(scalars_), builder_.op("constant", {}, {{"value", 0.5}})}));
        break;
      case 9: {
        if (views_ == Views::kNone) break;
        ValueId flat = builder_.op("reshape", {any(squares_)}, {{"shape", std::vector<int64_t>{n_ * n_}}});
        if (upto(2) == 0) flat = builder_.op("sigmoid", {flat});
        squares_.push_back(builder_.op("reshape", {flat}, {{"shape", std::vector<int64_t>{n_, n_}}}));
        break;
      }
      case 10:
      case 11:
        squares_.push_back(bounded(builder_.op("matmul", {any(squares_), any(squares_)}, {{"factors", std::string("mk,kn->mn")}})));
        break;
      default:
        rarer_step();
    }
    if (upto(15) == 0) update();
  }
  void rarer_step() {
    using Integers = std::vector<int64_t>;
    ValueId x = any(squares_), y = any(squares_);
    const int64_t dim = upto(2), keep = upto(2);
    switch (upto(8)) {
      case 0:
      case 1: {  // sums meet other reductions over the same dim
        static const std::vector<std::string> reductions = {"reduce_sum", "reduce_max", "logsumexp"};
        ValueId r = builder_.op(reductions[static_cast<size_t>(upto(3))], {x}, {{"dims", Integers{dim}}, {"keep", keep}});
        if (keep == 1)
          squares_.push_back(builder_.op("add", {y, r}));
        else
          rows_.push_back(upto(2) == 0 ? r : builder_.op("subtract", {r, any(rows_)}));
        break;
      }
      case 2:
        squares_.push_back(builder_.op("transpose", {x}, {{"permutation", Integers{1, 0}}}));
        break;
      case 3: {  // rows one further: the last falls out, zeros come in
        Integers size = {n_, n_}, zero = {0, 0}, one = {0, 0};
        size[static_cast<size_t>(dim)] -= 1;
        one[static_cast<size_t>(dim)] = 1;
        ValueId part = builder_.op("slice", {x}, {{"begin", zero}, {"size", size}});
        squares_.push_back(builder_.op("pad", {part}, {{"before", one}, {"after", zero}}));
        break;
      }
      case 4: {
        Integers begin = {0, 0}, size = {n_, n_};
        begin[static_cast<size_t>(dim)] = n_ / 2;
        ValueId both = builder_.op("concat", {x, y}, {{"dim", dim}});
        squares_.push_back(builder_.op("slice", {both}, {{"begin", begin}, {"size", size}}));
        break;
      }
      case 5:
        squares_.push_back(builder_.op("softmax", {x}, {{"dim", dim}}));
        break;
      case 6:
        squares_.push_back(builder_.op("broadcast", {any(rows_)}, {{"shape", Integers{n_, n_}}, {"dims", Integers{dim}}}));
        break;
      default:
        squares_.push_back(builder_.op("multiply", {x, builder_.op("sigmoid", {y})}));
    }
  }
  ValueId bounded(ValueId id) { return upto(2) == 0 ? id : builder_.op("tanh", {id}); }

  // The new value of a variable, anywhere in the order: by an update op, by a product, or by whatever is there already.
  void update() {
    if (updated_ == variables_.size() || updates_ == Updates::kNone) return;
    Phase phase = std::exchange(builder_.phase, Phase::kUpdate);
    ValueId old = variables_[updated_], fresh = kNoValue, gradient = any(squares_);
    switch (upto(5)) {
      case 0:
        fresh = any(squares_);
        break;
      case 1:
        fresh = builder_.op("matmul", {old, gradient}, {{"factors", std::string("mk,kn->mn")}});
        break;
      case 2:
        fresh = builder_.op("tanh", {gradient});
        break;
      default:
        fresh = builder_.op("sgd_update", {old, gradient, any(scalars_)});
    }
    builder_.phase = phase;
    // A variable that takes the old value of another may exchange with it, which is refused; and a result must not be an old value.
    if (!made(fresh) && fresh != old) return;
    graph_.add_output(updated_ == 3 ? Role::kOptimizer : Role::kVariable, graph_.inputs[updated_].name, fresh);
    squares_.push_back(fresh);
    ++updated_;
  }

  // By an op that computes, not an input seen through views.
  bool made(ValueId id) const {
    while (graph_.value(id).op >= 0 && graph_.ops[static_cast<size_t>(graph_.value(id).op)].def->view)
      id = graph_.ops[static_cast<size_t>(graph_.value(id).op)].operands[0];
    return graph_.value(id).op >= 0;
  }

  void finish() {
    for (int i = 0; i < 4; ++i) update();
    for (int i = 0; i < 3; ++i)
      if (ValueId id = any(squares_); made(id)) graph_.add_output(i == 0 ? Role::kGradient : Role::kResult, "r" + std::to_string(i), id);
    if (ValueId id = any(scalars_); made(id)) graph_.add_output(Role::kResult, "scalar", id);
    if (ValueId id = any(rows_); made(id)) graph_.add_output(Role::kResult, "row", id);
  }

  std::mt19937 random_;
  int64_t n_;
  Views views_;
  Kinds kinds_;
  Updates updates_;
  Graph graph_;
  Builder builder_;
  std::vector<ValueId> variables_, squares_, rows_, scalars_;
  size_t updated_ = 0;
};

}  // namespace espalier

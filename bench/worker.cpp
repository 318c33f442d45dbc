#include "bench/worker.h"

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/ceiling.h"
#include "bench/clock.h"
#include "bench/kernels.h"
#include "bench/networks.h"
#include "bench/products.h"
#include "espalier/base/cores.h"
#include "espalier/base/error.h"

namespace espalier::bench {
namespace {

using Json = nlohmann::json;

int all_cores() { return static_cast<int>(available_cores().size()); }

// One core and all of them, once where that is the same.
std::vector<int> core_counts() { return all_cores() == 1 ? std::vector<int>{1} : std::vector<int>{1, all_cores()}; }

void say(const Json& line) { std::cout << line.dump() << std::endl; }

// Calls answer(N) for each line until the input ends.
void serve(const std::function<Json(int)>& answer) {
  for (int count; std::cin >> count;) say(answer(count));
}

Cut cut_of(const std::string& word) {
  if (word != "nothing" && word != "columns") usage_error("there is no cut '" + word + "'", "bench/table", "give nothing or columns");
  return word == "columns" ? Cut::kColumns : Cut::kNothing;
}

void ceilings() {
  Json lines = Json::array();
  for (int cores : core_counts()) {
    const Ceiling c = measure_ceiling(cores);
    lines.push_back({{"cores", c.cores}, {"gflops", c.gflops}, {"copy", c.copy}, {"triad", c.triad}, {"update", c.update}});
  }
  say(lines);
}

void speeds(std::vector<Speed> (*measure)(int)) {
  Json lines = Json::array();
  for (int cores : core_counts())
    for (const Speed& speed : measure(cores))
      lines.push_back({{"name", speed.name}, {"cores", speed.cores}, {"gigabytes", speed.gigabytes}});
  say(lines);
}

void products(const Network& network) {
  std::vector<BestProduct> best;
  for (const Product& product : products_of(network.widths, network.batch)) best.emplace_back(product);
  say(Json::array());
  serve([&](int runs) {
    Json ms = Json::array();
    for (BestProduct& product : best) {
      std::vector<double> seconds;
      for (int run = 0; run < runs; ++run) seconds.push_back(product.run());
      ms.push_back(1e3 * median(seconds));
    }
    return ms;
  });
}

// The first steps touch pages and wake threads.
void warm_up(Training& training) {
  for (double seconds = 0; seconds < 0.5;) seconds += training.step();
}

void steps(const Network& network, const std::string& mesh, Cut cut) {
  Training training(network, mesh, cut);
  const double first_loss = (training.step(), training.loss());
  warm_up(training);
  std::vector<int64_t> arenas = training.trainer().allocated_bytes(), received = training.trainer().communicated_bytes();
  say({{"arena", *std::max_element(arenas.begin(), arenas.end())},
       {"received", *std::max_element(received.begin(), received.end())},
       {"first_loss", first_loss}});
  serve([&](int count) {
    Json ms = Json::array();
    for (int i = 0; i < count; ++i) ms.push_back(1e3 * training.step());
    return Json{{"ms", ms}, {"round_trip_ns", round_trip_ns()}};
  });
}

// Milliseconds of each op of a step, the median over some steps.
void ops(const Network& network, const std::string& mesh, Cut cut) {
  constexpr int kSteps = 7;
  std::vector<std::vector<double>> ms;  // by op
  const Graph* graph = nullptr;
  bool warm = false;
  Training training(network, mesh, cut, [&](const nn::RunTrace& run) {
    if (!warm) return;
    graph = &run.program.graph;
    ms.resize(graph->ops.size());
    for (const TraceEvent& event : run.events)
      if (event.device == 0 && event.op >= 0)
        ms[static_cast<size_t>(event.op)].push_back(1e-6 * static_cast<double>(event.end_ns - event.begin_ns));
  });
  warm_up(training);
  warm = true;
  for (int step = 0; step < kSteps; ++step) training.step();
  Json lines = Json::array();
  for (size_t i = 0; i < ms.size(); ++i) {
    if (ms[i].empty()) continue;
    const Op& op = graph->ops[i];
    lines.push_back({{"op", op.def->name},
                     {"layer", op.scope},
                     {"phase", to_string(op.phase)},
                     {"result", to_string(graph->type(op.results.front()).shape)},
                     {"ms", median(ms[i])}});
  }
  say(lines);
}

void compile_once(const Network& network, const std::string& mesh, Cut cut) {
  const double begin = now_seconds();
  const size_t collectives = compiled_collectives(network, mesh, cut);
  say({{"seconds", now_seconds() - begin}, {"collectives", collectives}});
}

}  // namespace

int work(const std::vector<std::string>& words) {
  const std::string kind = words.empty() ? "" : words[0];
  if (kind == "ceilings" && words.size() == 1) return ceilings(), 0;
  if (kind == "kernels" && words.size() == 1) return speeds(measure_kernels), 0;
  if (kind == "collectives" && words.size() == 1) return speeds(measure_collectives), 0;
  if (kind == "products" && words.size() == 2) return products(network(words[1])), 0;
  if (words.size() == 4) {
    const Network& net = network(words[1]);
    const Cut cut = cut_of(words[3]);
    if (kind == "steps") return steps(net, words[2], cut), 0;
    if (kind == "ops") return ops(net, words[2], cut), 0;
    if (kind == "compile") return compile_once(net, words[2], cut), 0;
  }
  usage_error("there is no worker '" + kind + "' of so many words", "bench/table --worker", "see bench/worker.h");
}

}  // namespace espalier::bench

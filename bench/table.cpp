// One table of speed: what the machine can do, and what share of it the engine reaches. See CONTRIBUTING.md, "Prove a gain".
//   bench/table                          everything but the large network, some four minutes
//   bench/table steps --only fashion     some rows of one section
//   bench/table --row 'dense/data 2'     one row of the steps as JSON, in a process of its own (what bench/peers runs)
// Whole steps are compared with their matrix products alone (products.h), measured in turn with them, round after round: a machine that
// slows down slows both. Every measurement is a process of its own (worker.h); this one never computes, so that it stays small (child.h).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <thread>

#include "bench/child.h"
#include "bench/clock.h"
#include "bench/networks.h"
#include "bench/products.h"
#include "bench/report.h"
#include "bench/worker.h"
#include "espalier/base/cores.h"

namespace espalier::bench {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

// --- what is measured ---------------------------------------------------------------------------------------------------------------

// A whole training step. Shares of the products' time: what it has to reach, and what it wants to.
struct StepRow {
  const char* name;
  const char* network;
  const char* mesh;
  const char* cut;
  int cores;  // 0: all
  double least, aim;
};
const std::vector<StepRow> kSteps = {
    {"dense/one", "dense", "data=1", "nothing", 0, 0.95, 0.98},
    {"dense/one, 1 core", "dense", "data=1", "nothing", 1, 0.95, 0.98},
    {"dense/data 2", "dense", "data=2", "nothing", 0, 0.89, 0.94},
    {"dense/model 2", "dense", "model=2", "columns", 0, 0.93, 0.97},
    {"dense/data2 model4", "dense", "data=2,model=4", "columns", 0, 0.85, 0.92},
    {"dense/data 8", "dense", "data=8", "nothing", 0, 0.62, 0.80},
    {"fashion/one", "fashion", "data=1", "nothing", 0, 0.84, 0.91},
    {"fashion/data 2", "fashion", "data=2", "nothing", 0, 0.70, 0.80},
    {"fashion/data 8", "fashion", "data=8", "nothing", 0, 0.35, 0.55},
    {"fashion/data2 model4", "fashion", "data=2,model=4", "columns", 0, 0.50, 0.70},
};

// How many times as fast one row of the steps has to be as another.
struct Comparison {
  const char *faster, *than;
  double least;
};
const std::vector<Comparison> kComparisons = {
    {"dense/model 2", "dense/one, 1 core", 1.9},
    {"dense/data 2", "dense/one, 1 core", 1.85},
    {"dense/data2 model4", "dense/model 2", 0.9},
    {"dense/data2 model4", "dense/data 2", 0.9},
};

constexpr double kNoAim = std::numeric_limits<double>::infinity();

int steps_a_round(const std::string& network) { return network == "dense" ? 3 : 150; }
int runs_a_round(const std::string& network) { return network == "dense" ? 3 : 40; }

// --- the processes ------------------------------------------------------------------------------------------------------------------

std::filesystem::path self() { return std::filesystem::read_symlink("/proc/self/exe"); }
std::string espalier_program() { return (self().parent_path().parent_path() / "espalier").string(); }
std::string bench_file(const std::string& name) { return std::string(ESPALIER_BENCH_DIR) + "/models/" + name; }

Child worker(const Words& words, int cores = 0) {
  Words all = {self().string(), "--worker"};
  all.insert(all.end(), words.begin(), words.end());
  // Threads of oneDNN's own team each on a core, as the engine's are.
  const bool library = !words.empty() && words[0] == "products";
  return Child(all, {.cores = cores, .environment = library ? Words{"OMP_PROC_BIND=close"} : Words{}});
}

Json result_of(const Words& words) { return Json::parse(worker(words).read_line()); }

// Nobody else of ours runs while one measures; threads that wait a little before they sleep have time to.
Json ask(Child& child, int count) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return Json::parse(child.ask(std::to_string(count)));
}

std::vector<double> numbers(const Json& list) { return list.get<std::vector<double>>(); }

int all_cores() { return static_cast<int>(available_cores().size()); }

struct Options {
  int rounds = 5;
  std::string only;
  bool wants(const std::string& name) const { return only.empty() || std::regex_search(name, std::regex(only)); }
};

// --- sections -----------------------------------------------------------------------------------------------------------------------

// By number of cores.
std::map<int, Json> ceilings() {
  std::map<int, Json> by_cores;
  Report report("Ceilings of this machine", {"cores", "multiply-add GFLOP/s", "copy GB/s", "triad GB/s", "update GB/s"});
  for (const Json& c : result_of({"ceilings"})) {
    by_cores[c["cores"]] = c;
    report.add({fmt::format("{}", c["cores"].get<int>()), fixed(c["gflops"], 1), fixed(c["copy"], 1), fixed(c["triad"], 1),
                fixed(c["update"], 1)});
  }
  report.print();
  return by_cores;
}

// What the engine's step takes for a product: the op of that layer and phase whose result has the product's shape.
double ms_in_step(const Json& ops, const Product& product) {
  for (const Json& op : ops) {
    const bool forward = op["phase"] == "forward";
    if (op["op"].get<std::string>().starts_with("matmul") && op["layer"] == product.layer &&
        forward == (product.kind == ProductKind::kForward) && op["result"] == fmt::format("({}, {})", product.m, product.n))
      return op["ms"];
  }
  return 0;
}

void products(const Options& options, const std::map<int, Json>& ceilings) {
  const int cores = all_cores();
  const double peak = ceilings.at(cores)["gflops"];
  Report report(fmt::format("Matrix products on {} cores, as shares of the multiply-add peak", cores),
                {"network", "product", "oneDNN's best form", "share", "in the step", "share"});
  for (const char* name : {"dense", "fashion"}) {
    if (!options.wants(name)) continue;
    Child child = worker({"products", name});
    child.read_line();
    std::vector<std::vector<double>> rounds;
    for (int round = 0; round < options.rounds; ++round) rounds.push_back(numbers(ask(child, runs_a_round(name))));
    const Json ops = result_of({"ops", name, "data=1", "nothing"});
    const std::vector<Product> all = products_of(network(name).widths, network(name).batch);
    for (size_t p = 0; p < all.size(); ++p) {
      std::vector<double> ms;
      for (const std::vector<double>& round : rounds) ms.push_back(round[p]);
      const double gflop = 1e-6 * all[p].flops(), engine = ms_in_step(ops, all[p]);  // per millisecond
      report.add({name,
                  fmt::format("{} of {}: {} x {} x {}", to_string(all[p].kind), all[p].layer.substr(all[p].layer.find('/') + 1), all[p].m,
                              all[p].k, all[p].n),
                  fmt::format("{:.3f} ms", median(ms)), fixed(gflop / median(ms) / peak, 2),
                  engine > 0 ? fmt::format("{:.3f} ms", engine) : "-", engine > 0 ? fixed(gflop / engine / peak, 2) : "-"});
    }
  }
  report.print();
}

// `bytes_moved`: bytes of the ceiling for each byte counted.
void speeds(const Options& options, const std::map<int, Json>& ceilings, const char* section, const std::string& title, const char* ceiling,
            double bytes_moved) {
  Report report(title, {"what", "cores", "GB/s", "share"});
  for (const Json& speed : result_of({section})) {
    if (!options.wants(speed["name"])) continue;
    const double gigabytes = speed["gigabytes"];
    report.add({speed["name"], fmt::format("{}", speed["cores"].get<int>()), fixed(gigabytes, 1),
                fixed(bytes_moved * gigabytes / ceilings.at(speed["cores"])[ceiling].get<double>(), 2)});
  }
  report.print();
}

// What was measured of one row, a figure a round.
struct Measured {
  std::vector<double> step_ms, products_ms, round_trip_ns;
  double best_ms = 0;  // of any single step
  Json facts;
};

// Steps and products in turn: every row of one network and its products once a round.
std::map<std::string, Measured> measure_steps(const Options& options) {
  std::map<std::string, Measured> measured;
  for (const std::string network : {"dense", "fashion"}) {
    std::map<int, Child> products;
    std::vector<std::pair<const StepRow*, Child>> rows;
    for (const StepRow& row : kSteps) {
      if (row.network != network || !options.wants(row.name)) continue;
      if (!products.count(row.cores)) products.emplace(row.cores, worker({"products", network}, row.cores)).first->second.read_line();
      rows.emplace_back(&row, worker({"steps", network, row.mesh, row.cut}, row.cores));
      measured[row.name].facts = Json::parse(rows.back().second.read_line());
    }
    for (int round = 0; round < options.rounds; ++round) {
      std::map<int, double> products_ms;
      for (auto& [cores, child] : products) {
        const std::vector<double> ms = numbers(ask(child, runs_a_round(network)));
        products_ms[cores] = mean(ms) * static_cast<double>(ms.size());
      }
      for (auto& [row, child] : rows) {
        const Json answer = ask(child, steps_a_round(network));
        const std::vector<double> ms = numbers(answer["ms"]);
        Measured& one = measured[row->name];
        one.round_trip_ns.push_back(answer["round_trip_ns"]);
        one.step_ms.push_back(median(ms));
        one.products_ms.push_back(products_ms[row->cores]);
        one.best_ms = one.best_ms > 0 ? std::min(one.best_ms, smallest(ms)) : smallest(ms);
      }
    }
  }
  return measured;
}

double median_ratio(const std::vector<double>& of, const std::vector<double>& over) {
  std::vector<double> ratios;
  for (size_t i = 0; i < of.size() && i < over.size(); ++i) ratios.push_back(of[i] / over[i]);
  return median(ratios);
}

double gigaflop_of(const Network& network) {
  double flops = 0;
  for (const Product& product : products_of(network.widths, network.batch)) flops += product.flops();
  return 1e-9 * flops;
}

void steps(const Options& options, const std::map<int, Json>& ceilings) {
  const std::map<std::string, Measured> measured = measure_steps(options);
  Report report("Whole steps: the time of their matrix products alone over theirs",
                {"step", "products", "step", "fastest", "share", "of fastest", "at least", "aim", ""});
  Report around("The same steps: their share of the multiply-add peak, memory and messages, and how far apart the cores were",
                {"step", "of peak", "a device holds", "and receives", "core to core"});
  for (const StepRow& row : kSteps) {
    const auto at = measured.find(row.name);
    if (at == measured.end()) continue;
    const Measured& one = at->second;
    const double share = median_ratio(one.products_ms, one.step_ms);
    const double peak = ceilings.at(row.cores > 0 ? row.cores : all_cores())["gflops"];
    report.add({row.name, fmt::format("{:.2f} ms", median(one.products_ms)), fmt::format("{:.2f} ms", median(one.step_ms)),
                fmt::format("{:.2f} ms", one.best_ms), fixed(share, 3), fixed(smallest(one.products_ms) / one.best_ms, 3),
                fixed(row.least, 2), fixed(row.aim, 2), verdict(share, row.least, row.aim)});
    around.add({row.name, fixed(gigaflop_of(network(row.network)) / (1e-3 * median(one.step_ms)) / peak, 2),
                fmt::format("{:.1f} MiB", one.facts["arena"].get<double>() / (1 << 20)),
                fmt::format("{:.1f} MiB", one.facts["received"].get<double>() / (1 << 20)),
                fmt::format("{:.0f} ns", median(one.round_trip_ns))});
  }
  report.print();
  around.print();
  Report compared("One step against another", {"", "is so many times as fast as", "times", "at least", ""});
  for (const Comparison& c : kComparisons) {
    const auto faster = measured.find(c.faster), than = measured.find(c.than);
    if (faster == measured.end() || than == measured.end()) continue;
    const double times = median_ratio(than->second.step_ms, faster->second.step_ms);
    compared.add({c.faster, c.than, fixed(times, 2), fixed(c.least, 2), verdict(times, c.least, kNoAim)});
  }
  compared.print();
}

// --- the program itself -------------------------------------------------------------------------------------------------------------

Finished train(const Words& more, int cores = 0) {
  Words words = {espalier_program(), "train"};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--data", "synthetic", "--quiet", "--json"});
  Finished finished = run_program(words, {.cores = cores});
  if (finished.code != 0) throw std::runtime_error(fmt::format("'{}' ended with {}", fmt::join(words, " "), finished.code));
  return finished;
}

// Lower is better: the bar is the most that is allowed.
void add_limit(Report& report, const std::string& what, const std::vector<double>& values, const char* unit, int digits, double most,
               double aim) {
  const double value = median(values);
  report.add({what, fmt::format("{:.{}f} {}", value, digits, unit), fmt::format("{:.{}f} {}", smallest(values), digits, unit),
              fmt::format("{:g} {}", most, unit), aim > 0 ? fmt::format("{:g} {}", aim, unit) : "",
              verdict(-value, -most, aim > 0 ? -aim : kNoAim)});
}

Report limits(const std::string& title) { return Report(title, {"what", "median", "best", "at most", "aim", ""}); }

void start(const Options& options) {
  Report report = limits("The program: from its start to its end after one step of the dense network, and the most memory it has in four");
  const Words dense = {bench_file("dense.json"), "--samples", "512", "--batch-size", "512"};
  auto with = [&](const Words& more) {
    Words words = dense;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  std::vector<double> seconds, one_core, megabytes;
  for (int round = 0; round < options.rounds; ++round) {
    seconds.push_back(train(with({"--steps", "1"})).seconds);
    one_core.push_back(train(with({"--steps", "1"}), 1).seconds);
    megabytes.push_back(1e-6 * static_cast<double>(train(with({"--epochs", "4"})).resident_bytes));
  }
  add_limit(report, "dense, one device: first step ended", seconds, "s", 2, 0.3, 0.1);
  add_limit(report, "the same on one core", one_core, "s", 2, 0.3, 0.1);
  add_limit(report, "dense, one device: resident memory, at most", megabytes, "MB", 0, 260, 200);
  report.print();

  Report compiling("From layers to a compiled step", {"network", "mesh", "seconds"});
  for (const auto& [network, mesh] :
       {std::pair("dense", "data=2,model=4"), std::pair("fashion", "data=2,model=4"), std::pair("fashion", "data=32,model=32")})
    compiling.add({network, mesh, fixed(result_of({"compile", network, mesh, "columns"})["seconds"], 3)});
  compiling.print();
}

// 16,000 -> 64,000 -> 8,000 on four devices: 1.54 billion parameters.
void large() {
  Report report = limits("The large network, model=4 by columns, batch 32");
  const Words words = {bench_file("large.json"), "--mesh", "model=4",   "--layout", bench_file("columns.json"), "--batch-axis", "none",
                       "--batch-size",           "32",     "--samples", "32"};
  auto with = [&](const char* steps) {
    Words all = words;
    all.insert(all.end(), {"--epochs", steps});
    return all;
  };
  const double first = train(with("1")).seconds;
  const Finished run = train(with("6"));
  const Json told = Json::parse(run.output);
  double planned = 0;
  for (const Json& device : told["memory"]) planned += device["peak"].get<double>();
  add_limit(report, "first step ended", {first}, "s", 1, 25, 0);
  add_limit(report, "a step", {told["step_ms"]["median"].get<double>() * 1e-3}, "s", 2, 1.6, 0);
  add_limit(report, "resident memory, at most", {1e-9 * static_cast<double>(run.resident_bytes)}, "GB", 2, 8, 0);
  add_limit(report, "resident memory over the plan + 200 MB", {static_cast<double>(run.resident_bytes) / (planned + 200e6)}, "", 3, 1.05,
            0);
  report.print();
}

// --- one row, for other scripts -----------------------------------------------------------------------------------------------------

int print_row(const std::string& name, int count) {
  for (const StepRow& row : kSteps) {
    if (row.name != name) continue;
    Child child = worker({"steps", row.network, row.mesh, row.cut}, row.cores);
    Json line = Json::parse(child.read_line());
    const std::vector<double> ms = numbers(ask(child, count)["ms"]);
    line.update(
        {{"name", name}, {"steps", count}, {"step_ms_median", median(ms)}, {"step_ms_min", smallest(ms)}, {"step_ms_mean", mean(ms)}});
    fmt::print("{}\n", line.dump());
    return 0;
  }
  Words names;
  for (const StepRow& row : kSteps) names.push_back(row.name);
  throw std::runtime_error(fmt::format("there is no row '{}'; known: {}", name, fmt::join(names, "; ")));
}

const Words kSections = {"ceilings", "products", "kernels", "collectives", "steps", "start", "large"};

void print_table(Words sections, const Options& options) {
  if (sections.empty()) sections = {"ceilings", "products", "kernels", "collectives", "steps", "start"};
  auto wanted = [&](const char* section) { return std::find(sections.begin(), sections.end(), section) != sections.end(); };
  if (wanted("start")) start(options);
  if (wanted("large")) large();
  std::map<int, Json> ceiling;
  if (sections != Words{"start"} && sections != Words{"large"}) ceiling = ceilings();
  if (wanted("products")) products(options, ceiling);
  if (wanted("kernels"))
    speeds(options, ceiling, "kernels", "Kernels, as shares of the update bandwidth (more than one: in cache)", "update", 1);
  if (wanted("collectives"))
    speeds(
        options, ceiling, "collectives",
        "Collectives: bytes received by all devices, each read and written once, as shares of the copy bandwidth (more than one: in cache)",
        "copy", 2);
  if (wanted("steps")) steps(options, ceiling);
}

int run(int argc, char** argv) {
  CLI::App app("Prints what this machine can do, and what share of it Espalier reaches.", "bench/table");
  Words sections, worker_words;
  Options options;
  std::string row;
  int steps = 15;
  app.add_option("SECTION", sections, "what to print; all but large without it")->check(CLI::IsMember(kSections));
  app.add_option("--rounds", options.rounds, "how often each is measured, in turn with the others (5)")->check(CLI::Range(1, 1000));
  app.add_option("--only", options.only, "rows whose name matches this regular expression");
  app.add_option("--row", row, "print one row of the steps as a line of JSON");
  app.add_option("--steps", steps, "of --row (15)")->check(CLI::Range(1, 1'000'000));
  app.add_option("--worker", worker_words, "internal: see bench/worker.h")->expected(1, 4);
  CLI11_PARSE(app, argc, argv);
  if (!worker_words.empty()) return work(worker_words);
  if (!row.empty()) return print_row(row, steps);
  print_table(sections, options);
  return 0;
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that ended is told by what it did not answer
  try {
    return espalier::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}

#pragma once
// What does not fit is refused before anything is allocated, with the breakdown and a plan that fits.
#include <functional>
#include <optional>
#include <string>

#include "espalier/cli/session.h"

namespace espalier::cli {

// Compiles everything that a command will run.
using Prepare = std::function<void(nn::Trainer&)>;

// Compiles what `samples` samples in batches take: the full batch and the last, smaller one.
void compile_batches(nn::Trainer& trainer, nn::StepKind kind, int64_t samples, int64_t batch_size);

// Another way to spread the job over as many devices.
struct Proposal {
  std::string mesh;    // as --mesh takes it
  std::string layout;  // the content of a file for --layout
  int64_t bytes = 0;   // of the fullest device's arena
};
// The first that fits of: every variable cut by columns, or by columns and rows in turn (the cheaper in communication), over an axis
// `model` beside as long an axis `data` as possible.
std::optional<Proposal> find_plan_that_fits(const Job& job, const Prepare& prepare);

// Error (kMemory), with the breakdown of the fullest device and the proposal, when what `prepare` has compiled does not fit.
void require_fit(const Job& job, const nn::Trainer& trainer, const Prepare& prepare);

}  // namespace espalier::cli

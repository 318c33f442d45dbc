#pragma once
// From options to what every command works on: the model, how it is trained, the distribution, and samples bound to it.
#include <functional>
#include <memory>
#include <optional>

#include "espalier/cli/options.h"
#include "espalier/data/open.h"
#include "espalier/nn/trainer.h"

namespace espalier::cli {

struct Job {
  nn::Model model;
  nn::Compilation compilation;
  Distribution distribution;
  nn::TrainerOptions options;
};

// Reads the model (a file, or standard input) and the layout file. Errors (kUsage): no such file; whatever is wrong in them; a loss that
// neither the file nor --loss gives, unless the command needs none.
Job read_job(const Options& options);

// Everything replicated on one device: what verify compares with.
Distribution one_device();

// A trainer for the job; what the layouts warn of goes to standard error unless --quiet.
std::unique_ptr<nn::Trainer> make_trainer(const Options& options, const Job& job);

// The samples of --data, bound to what a step of this kind reads. Errors (kUsage): no --data; what open_dataset refuses.
std::unique_ptr<Dataset> open_samples(const Options& options, const nn::Trainer& trainer, DataSplit split, nn::StepKind kind);
// The test samples, where the source has some apart from its training samples; else null.
std::unique_ptr<Dataset> open_validation(const Options& options, const nn::Trainer& trainer);

// Before anything is computed: an Error when what `flag` names cannot be written (kStorage), or is a file that this run reads (kUsage).
void check_place(const Options& options, const std::string& flag, const std::string& path);

// Weights from --weights, else from the seed, which is noted where untrained weights are hardly meant.
enum class Untrained { kExpected, kNoted };
void prepare_weights(const Options& options, nn::Trainer& trainer, Untrained untrained);

}  // namespace espalier::cli

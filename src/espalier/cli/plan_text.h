#pragma once
// The parts of what `plan` and `inspect` print for people, each of whole lines of at most 80 columns.
#include <string>

#include "espalier/nn/trainer.h"

namespace espalier::cli {

// "batch of 128 over 'data': 64 samples on each device".
std::string batch_text(const Distribution& distribution, int64_t size);
// Every variable with its layout and the shard of the first device.
std::string variables_text(const nn::Trainer& trainer);
// One row for devices with equal figures; what it is compared with.
std::string memory_text(const nn::Trainer& trainer);
// Every collective of one step: what, over which axes, when, how much, why.
std::string communication_text(const Compiled& step);
std::string collectives_table(const std::vector<Collective>& collectives);

}  // namespace espalier::cli

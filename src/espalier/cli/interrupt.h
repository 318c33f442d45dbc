#pragma once
// Ctrl-C and SIGTERM while training: the first asks the trainer to stop after the step in progress, the second ends the program at once.
#include "espalier/nn/trainer.h"

namespace espalier::cli {

// At most one lives at a time: a signal handler knows nothing but what is static.
class Interrupt {
 public:
  explicit Interrupt(nn::Trainer& trainer);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int signal() const;  // that arrived; 0: none
};

}  // namespace espalier::cli

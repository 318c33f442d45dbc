#include "espalier/cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace espalier::cli {
namespace {

std::atomic<nn::Trainer*> trainer_to_stop = nullptr;
std::atomic<int> arrived = 0;

void on_signal(int number) {
  arrived = number;
  if (nn::Trainer* trainer = trainer_to_stop) trainer->request_stop();
}

void install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second signal finds the default, which ends the program
  for (int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt(nn::Trainer& trainer) {
  arrived = 0;
  trainer_to_stop = &trainer;
  install(on_signal);
}

Interrupt::~Interrupt() {
  install(SIG_DFL);
  trainer_to_stop = nullptr;
}

int Interrupt::signal() const { return arrived; }

}  // namespace espalier::cli

#pragma once
// Progress on standard error: a bar with rate, loss and time left on a terminal; otherwise a line an epoch, and one every ten seconds of a
// long epoch, so that a log tells that the program lives.
#include <chrono>
#include <string>

#include "espalier/nn/trainer.h"

namespace espalier::cli {

enum class ProgressForm { kBar, kLines };
// kBar when standard error is a terminal.
ProgressForm progress_form();

class Progress : public nn::Callback {
 public:
  // what: "epoch" is numbered against `epochs` ("epoch 2/5"), other words stand alone ("evaluate").
  // samples: of one epoch, for the bar and the time left.
  Progress(ProgressForm form, std::string what, int64_t epochs, int64_t samples);
  ~Progress() override;

  void on_epoch_begin(int64_t epoch, int64_t steps) override;
  void on_batch_end(int64_t step, int64_t samples_done, const nn::Logs& running) override;
  void on_epoch_end(int64_t epoch, const nn::Logs& logs) override;
  void clear_line();  // of the bar, for a note

 private:
  using Clock = std::chrono::steady_clock;
  std::string label() const;
  void draw(const nn::Logs& running);
  void print_line(const std::string& line);

  ProgressForm form_;
  std::string what_;
  int64_t epochs_, samples_, epoch_ = 0, done_ = 0;
  Clock::time_point begin_, last_;
  bool open_ = false;  // a bar stands on the terminal's last line
};

// Parts of a progress line, each a function of its numbers.
std::string bar_text(double fraction, int width);  // "━━━━━━━━╺───────"
std::string rate_text(double per_second);          // "12.3k/s"
std::string seconds_text(double seconds);          // "0:04", "1:02:03"
std::string logs_text(const nn::Logs& logs);       // "loss 0.4312  accuracy 0.8431"

}  // namespace espalier::cli

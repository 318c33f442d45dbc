#include "espalier/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "espalier/cli/wrap.h"

namespace espalier::cli {
namespace {

constexpr double kRedraw = 0.1;   // seconds: faster than this nobody reads, and a terminal costs more than a step
constexpr double kLineEach = 10;  // seconds between lines of a long epoch in a log
constexpr int kBarWidth = 20;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

size_t terminal_columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kColumns;
}

}  // namespace

ProgressForm progress_form() { return isatty(STDERR_FILENO) ? ProgressForm::kBar : ProgressForm::kLines; }

std::string bar_text(double fraction, int width) {
  int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  std::string text;
  for (int i = 0; i < width; ++i) text += i < full ? "━" : i == full ? "╺" : "─";
  return text;
}

std::string rate_text(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.1f}M/s", per_second / 1e6);
  if (per_second >= 1e3) return fmt::format("{:.1f}k/s", per_second / 1e3);
  return fmt::format("{:.0f}/s", per_second);
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e9) return "?";
  int64_t whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string logs_text(const nn::Logs& logs) {
  std::string text;
  for (const auto& [name, value] : logs) {
    const double shown = std::isnan(value) ? std::abs(value) : value;  // a NaN's sign means nothing
    text += fmt::format("{}{} {:.4f}", text.empty() ? "" : "  ", name, shown);
  }
  return text;
}

Progress::Progress(ProgressForm form, std::string what, int64_t epochs, int64_t samples)
    : form_(form), what_(std::move(what)), epochs_(epochs), samples_(samples), begin_(Clock::now()), last_(begin_) {}

Progress::~Progress() {
  if (open_) std::fputs("\n", stderr);
}

std::string Progress::label() const { return what_ == "epoch" ? fmt::format("epoch {}/{}", epoch_ + 1, epochs_) : what_; }

void Progress::clear_line() {
  if (open_) std::fputs("\r\x1b[K", stderr);
  open_ = false;
}

void Progress::print_line(const std::string& line) {
  std::fputs(((open_ ? "\r\x1b[K" : "") + line + "\n").c_str(), stderr);
  open_ = false;
}

// What does not fit on the line is left out from the right, so that the bar never wraps.
void Progress::draw(const nn::Logs& running) {
  double elapsed = seconds_since(begin_), rate = elapsed > 0 ? static_cast<double>(done_) / elapsed : 0;
  double fraction = samples_ > 0 ? static_cast<double>(done_) / static_cast<double>(samples_) : 0;
  double left = rate > 0 ? static_cast<double>(std::max<int64_t>(samples_ - done_, 0)) / rate : INFINITY;
  std::string line = form_ == ProgressForm::kBar ? fmt::format("{} {} {:3.0f}%", label(), bar_text(fraction, kBarWidth), fraction * 100)
                                                 : fmt::format("{} {:3.0f}%", label(), fraction * 100);
  std::vector<std::string> parts = {rate_text(rate), seconds_text(left) + " left"};
  for (const auto& log : running) parts.push_back(logs_text({log}));
  for (const std::string& part : parts) {
    if (form_ == ProgressForm::kBar && columns_of(line) + 2 + columns_of(part) >= terminal_columns()) break;
    line += "  " + part;
  }
  if (form_ == ProgressForm::kLines) return print_line(line);
  std::fputs(("\r\x1b[K" + line).c_str(), stderr);
  std::fflush(stderr);
  open_ = true;
}

void Progress::on_epoch_begin(int64_t epoch, int64_t) {
  epoch_ = epoch;
  done_ = 0;
  begin_ = Clock::now();
  last_ = form_ == ProgressForm::kBar ? Clock::time_point() : begin_;  // a bar shows at once
}

void Progress::on_batch_end(int64_t, int64_t samples_done, const nn::Logs& running) {
  done_ = samples_done;
  if (seconds_since(last_) < (form_ == ProgressForm::kBar ? kRedraw : kLineEach)) return;
  last_ = Clock::now();
  draw(running);
}

void Progress::on_epoch_end(int64_t epoch, const nn::Logs& logs) {
  epoch_ = epoch;
  double elapsed = seconds_since(begin_);
  double rate = elapsed > 0 ? static_cast<double>(done_) / elapsed : 0;
  print_line(fmt::format("{}  {:.1f} s  {}  {}", label(), elapsed, rate_text(rate), logs_text(logs)));
}

}  // namespace espalier::cli

// ProgressBar.
#include "rensa/training/extensions/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "rensa/core/error.h"

namespace rensa::extensions {

namespace {
std::string bar(const char* label, double rate, int length) {
  rate = std::clamp(rate, 0.0, 1.0);
  auto marks = static_cast<std::size_t>(rate * length);
  return fmt::format("{:>12} [{}{}] {:6.2f}%\n", label, std::string(marks, '#'),
                     std::string(static_cast<std::size_t>(length) - marks, '.'), rate * 100);
}
}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options) : options_(options) {
  if (options.update_interval < 1 || options.bar_length < 1) {
    throw ValueError("ProgressBar: update_interval and bar_length are positive numbers");
  }
}

void ProgressBar::initialize(training::Trainer&) { terminal_ = ::isatty(STDOUT_FILENO); }

std::string ProgressBar::text(const training::Trainer& trainer) const {
  const training::Updater& updater = trainer.updater();
  const training::Trigger& stop = trainer.stop_trigger();
  auto iteration = static_cast<double>(updater.iteration());
  double done = 0;  // of the run; unknown where it does not stop at an interval
  if (stop.unit() == "epoch") done = updater.epoch_detail() / stop.period();
  if (stop.unit() == "iteration") done = iteration / stop.period();
  double seconds = std::max(trainer.elapsed_time(), 1e-9);
  std::string text = bar("total", done, options_.bar_length) +
                     bar("this epoch", updater.epoch_detail() - std::floor(updater.epoch_detail()),
                         options_.bar_length);
  text += fmt::format("{:>10} iter, {} epoch", updater.iteration(), updater.epoch());
  if (!stop.unit().empty()) text += fmt::format(" / {:g} {}s", stop.period(), stop.unit());
  text += fmt::format("\n{:>10.5g} iters/sec.", iteration / seconds);
  if (done > 0) {
    auto left = static_cast<std::int64_t>(seconds * (1 - done) / done);
    text += fmt::format(" To go: {}:{:02}:{:02}.", left / 3600, left / 60 % 60, left % 60);
  }
  return text + '\n';
}

void ProgressBar::operator()(training::Trainer& trainer) {
  if (!terminal_ || trainer.updater().iteration() % options_.update_interval) return;
  std::string lines = text(trainer);
  auto height = std::count(lines.begin(), lines.end(), '\n');
  fmt::print("\033[J{}\033[{}A", lines, height);
  std::fflush(stdout);
  drawn_ = true;
}

void ProgressBar::finalize() {
  if (drawn_) fmt::print("\033[J");
}

}  // namespace rensa::extensions

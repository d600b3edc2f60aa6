// ProgressBar.
#include "rensa/training/extensions/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <utility>

#include "rensa/core/error.h"

namespace rensa::extensions {

std::string detail::progress_bar(const std::string& label, double done, int length) {
  done = std::clamp(done, 0.0, 1.0);
  auto marks = static_cast<std::size_t>(done * length);
  return fmt::format("{:>12} [{}{}] {:6.2f}%", label, std::string(marks, '#'),
                     std::string(static_cast<std::size_t>(length) - marks, '.'), done * 100);
}

namespace {
double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

detail::ProgressOutput::ProgressOutput(const ProgressBarOptions& options)
    : out_(options.out ? options.out : &std::cout),
      update_interval_(options.update_interval),
      terminal_(!options.out && ::isatty(STDOUT_FILENO)),
      line_interval_(options.line_interval),
      written_(steady_seconds()) {
  if (options.update_interval < 1 || options.bar_length < 1) {
    throw ValueError("ProgressBar: update_interval and bar_length are positive numbers");
  }
  if (!(options.line_interval >= 0)) {
    throw ValueError(fmt::format("ProgressBar: a line_interval of {} seconds; give 0 or more",
                                 options.line_interval));
  }
}

bool detail::ProgressOutput::is_line_due(std::int64_t n) {
  if (line_interval_ == 0) return n % update_interval_ == 0;
  double now = steady_seconds();
  if (now - written_ < line_interval_) return false;
  written_ = now;
  return true;
}

void detail::ProgressOutput::show(std::int64_t n, const std::function<std::string()>& drawing,
                                  const std::function<std::string()>& line) {
  if (!terminal_) {
    if (is_line_due(n)) *out_ << line() << std::flush;
    return;
  }
  if (n % update_interval_) return;
  std::string lines = drawing();
  auto height = std::count(lines.begin(), lines.end(), '\n');
  *out_ << "\033[J" << lines << "\033[" << height << 'A' << std::flush;
  drawn_ = true;
}

void detail::ProgressOutput::clear() {
  if (std::exchange(drawn_, false)) *out_ << "\033[J" << std::flush;
}

namespace {
/// How far a run is.
struct Progress {
  double done = 0;  // of the run; 0 where it does not stop at an interval
  double speed = 0;
  std::string to_go;  // "0:01:30"; empty where that is unknown

  explicit Progress(const training::Trainer& trainer) {
    const training::Updater& updater = trainer.updater();
    const training::Trigger& stop = trainer.stop_trigger();
    auto iteration = static_cast<double>(updater.iteration());
    if (stop.unit() == "epoch") done = updater.epoch_detail() / stop.period();
    if (stop.unit() == "iteration") done = iteration / stop.period();
    double seconds = std::max(trainer.elapsed_time(), 1e-9);
    speed = iteration / seconds;
    if (done <= 0) return;
    auto left = static_cast<std::int64_t>(std::max(seconds * (1 - done) / done, 0.0));
    to_go = fmt::format("{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60);
  }
};
}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options) : options_(std::move(options)) {
  (void)detail::ProgressOutput(options_);  // checks them
}

std::string ProgressBar::text(const training::Trainer& trainer) const {
  const training::Updater& updater = trainer.updater();
  const training::Trigger& stop = trainer.stop_trigger();
  Progress now(trainer);
  double of_epoch = updater.epoch_detail() - std::floor(updater.epoch_detail());
  std::string text = detail::progress_bar("total", now.done, options_.bar_length) + '\n' +
                     detail::progress_bar("this epoch", of_epoch, options_.bar_length) + '\n';
  text += fmt::format("{:>10} iter, {} epoch", updater.iteration(), updater.epoch());
  if (!stop.unit().empty()) text += fmt::format(" / {:g} {}s", stop.period(), stop.unit());
  text += fmt::format("\n{:>10.5g} iters/sec.", now.speed);
  if (!now.to_go.empty()) text += fmt::format(" To go: {}.", now.to_go);
  return text + '\n';
}

std::string ProgressBar::line(const training::Trainer& trainer) const {
  const training::Updater& updater = trainer.updater();
  const training::Trigger& stop = trainer.stop_trigger();
  auto of = [&](const char* unit) {
    return stop.unit() == unit ? fmt::format(" / {:g}", stop.period()) : std::string();
  };
  Progress now(trainer);
  std::string line = fmt::format("  epoch {:.2f}{}, iteration {}{}", updater.epoch_detail(),
                                 of("epoch"), updater.iteration(), of("iteration"));
  if (!now.to_go.empty()) line += fmt::format(", {:.1f}%", std::min(now.done, 1.0) * 100);
  line += fmt::format(", {:.4g} iters/sec", now.speed);
  if (!now.to_go.empty()) line += fmt::format(", {} to go", now.to_go);
  for (const std::string& entry : options_.entries) {
    auto value = trainer.observation().find(entry);
    if (value == trainer.observation().end()) continue;
    line += fmt::format(", {} {:.4g}", entry, value->second.item<double>());
  }
  return line + '\n';
}

void ProgressBar::operator()(training::Trainer& trainer) {
  output_->show(
      trainer.updater().iteration(), [&] { return text(trainer); }, [&] { return line(trainer); });
}

void ProgressBar::finalize() {
  if (output_) output_->clear();
}

}  // namespace rensa::extensions

// ProgressBar: how far a run is.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct ProgressBarOptions {
  int update_interval = 100;  // iterations between two drawings
  int bar_length = 50;        // characters of the bar
  /// Where nothing is drawn, seconds between two lines; 0: a line each `update_interval`.
  double line_interval = 10;
  /// What is observed ("main/loss") and shown in a line beside the progress. Each waits for the
  /// device.
  std::vector<std::string> entries = {};
  std::ostream* out = nullptr;  // std::cout when null
};

namespace detail {
/// "       total [####......]  42.00%", for a share `done` of [0, 1].
std::string progress_bar(const std::string& label, double done, int length);

/// Where progress is shown: drawn in one place on a terminal, written line by line elsewhere.
class ProgressOutput {
 public:
  explicit ProgressOutput(const ProgressBarOptions& options);
  /// To be called after the n-th iteration; asks for `drawing`, or for `line`, where that is due.
  /// Both give whole lines.
  void show(std::int64_t n, const std::function<std::string()>& drawing,
            const std::function<std::string()>& line);
  /// Takes away what is drawn.
  void clear();

 private:
  bool is_line_due(std::int64_t n);
  std::ostream* out_;
  int update_interval_;
  bool terminal_, drawn_ = false;
  double line_interval_, written_;  // seconds; when the last line was, by the steady clock
};
}  // namespace detail

/// Shows how far the run and the epoch are, the speed and the time to go. On a terminal it draws
/// them as bars, over and over in the same place, and waits for nothing. Into a file or a pipe it
/// writes a line now and then instead, without control characters; a run that ends before is
/// silent:
///   epoch 3.20 / 20, iteration 1920, 16.0%, 64.1 iters/sec, 0:02:37 to go, main/loss 0.0471
class ProgressBar final : public training::Extension {
 public:
  /// Throws ValueError for an interval or a length that is not positive, and for a line_interval
  /// that is negative.
  explicit ProgressBar(ProgressBarOptions options = {});
  void initialize(training::Trainer&) override { output_.emplace(options_); }
  void operator()(training::Trainer& trainer) override;
  void finalize() override;
  std::string default_name() const override { return "ProgressBar"; }

  /// The lines that would be drawn now.
  std::string text(const training::Trainer& trainer) const;
  /// The line that would be written now.
  std::string line(const training::Trainer& trainer) const;

 private:
  ProgressBarOptions options_;
  std::optional<detail::ProgressOutput> output_;  // of a run
};

}  // namespace rensa::extensions

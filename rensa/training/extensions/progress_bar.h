// ProgressBar: how far a run is.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct ProgressBarOptions {
  int update_interval = 100;  // iterations between two drawings
  int bar_length = 50;
  /// Where nothing is drawn, seconds between two lines; 0: a line each `update_interval`.
  double line_interval = 10;
  /// Values that a line has beside the progress, where they are observed. Each waits for the
  /// device.
  std::vector<std::string> entries = {"main/loss"};
  std::ostream* out = nullptr;  // std::cout when null
};

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
  void initialize(training::Trainer& trainer) override;
  void operator()(training::Trainer& trainer) override;
  void finalize() override;
  std::string default_name() const override { return "ProgressBar"; }

  /// The lines that would be drawn now.
  std::string text(const training::Trainer& trainer) const;
  /// The line that would be written now.
  std::string line(const training::Trainer& trainer) const;

 private:
  bool is_line_due(const training::Trainer& trainer);
  std::ostream& out() const;
  ProgressBarOptions options_;
  bool terminal_ = false, drawn_ = false;
  double written_ = 0;  // the trainer's elapsed time then
};

}  // namespace rensa::extensions

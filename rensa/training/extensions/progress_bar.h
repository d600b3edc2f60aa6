// ProgressBar: how far a run is, on a terminal.
#pragma once

#include <cstdint>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct ProgressBarOptions {
  int update_interval = 100;  // iterations between two drawings
  int bar_length = 50;        // characters of the bar
};

/// Draws the run's and the epoch's progress, the speed and the time to go. Where the standard
/// output is no terminal it draws nothing. Waits for nothing.
class ProgressBar final : public training::Extension {
 public:
  /// Throws ValueError for an interval or a length that is not positive.
  explicit ProgressBar(ProgressBarOptions options = {});
  void initialize(training::Trainer& trainer) override;
  void operator()(training::Trainer& trainer) override;
  void finalize() override;
  std::string default_name() const override { return "ProgressBar"; }

  /// The lines that would be drawn now.
  std::string text(const training::Trainer& trainer) const;

 private:
  ProgressBarOptions options_;
  bool terminal_ = false, drawn_ = false;
};

}  // namespace rensa::extensions

// TensorBoardReport: what was observed, and how parameters are distributed, for TensorBoard.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rensa/training/extensions/log_report.h"
#include "rensa/training/summary_writer.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct TensorBoardReportOptions {
  rensa::detail::NamedOptions named = {};
  std::vector<std::string> keys = {};  // all when empty; one that nobody reports is told of
  /// When the means over what was observed since the last time are written.
  training::Trigger trigger = {1, "epoch"};
  /// When histograms are written, of the optimizer's model; without a trigger, never.
  training::Trigger histogram_trigger = {};
  bool report_params = true, report_grads = true;  // which histograms
  std::string folder = {};                         // in the trainer's folder; empty: that itself
};

/// Writes an event file into the trainer's folder (tensorboard --logdir result): as LogReport, the
/// means of what each iteration observes, added up on the device; and histograms of each parameter
/// and its gradient, as "l1/W/data" and "l1/W/grad". Steps are iterations. A run that goes on from
/// a file goes on in an event file of its own, and what the earlier ones have of later iterations
/// is no longer shown. Waits for the device when it writes, for each histogram. A file that cannot
/// be made is told before the first iteration, by a SerializationError.
class TensorBoardReport final : public training::Extension {
 public:
  /// Throws ValueError for no trigger.
  explicit TensorBoardReport(TensorBoardReportOptions options = {});
  void initialize(training::Trainer& trainer) override;
  void operator()(training::Trainer& trainer) override;
  void finalize() override;
  /// The sums of the means that are coming.
  void members(Visitor& v) override;
  std::string default_name() const override { return "TensorBoardReport"; }

  /// Of the run, from its beginning to its end, for more than is written here: a graph, a picture.
  /// Throws ValueError before and after.
  const training::SummaryWriter& writer() const;

 private:
  void write_means(training::Trainer& trainer);
  void write_histograms(training::Trainer& trainer) const;
  TensorBoardReportOptions options_;
  DictSummary summary_;
  MissingKeys missing_;
  std::optional<training::SummaryWriter> writer_;
};

}  // namespace rensa::extensions

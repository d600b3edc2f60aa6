// ParameterStatistics: how a model's parameters and gradients are distributed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

/// Makes one or several numbers of the elements of an array, flattened.
using Statistic = std::function<Array(const Array&)>;
/// Chainer's: mean, std, min, max, zeros (how many) and percentile, of those at 0, 1, 2 and 3
/// standard deviations on both sides of a normal distribution's mean.
std::map<std::string, Statistic> default_statistics();

struct ParameterStatisticsOptions {
  std::map<std::string, Statistic> statistics = default_statistics();
  bool report_params = true, report_grads = true;  // of parameters, and of their gradients
  std::string prefix = {};
  /// When the means are reported over what was found since the last time.
  training::Trigger trigger = {1, "epoch"};
  bool skip_nan_params = false;  // the statistics of what has a NaN are NaN, without a look
};

/// Computes statistics of each parameter and its gradient after every iteration (unless it is given
/// another trigger), and observes their means as "<prefix>/l1/W/data/mean",
/// "l1/W/grad/percentile/0". Parameters without values and gradients that are not there are left
/// out. Waits for the device where the means are reported, and with `skip_nan_params`.
class ParameterStatistics final : public training::Extension {
 public:
  explicit ParameterStatistics(const Link& model, ParameterStatisticsOptions options = {});
  void operator()(training::Trainer& trainer) override;
  void members(Visitor& v) override;
  std::string default_name() const override { return "parameter_statistics"; }
  int default_priority() const override { return training::kPriorityWriter; }

 private:
  void add(const std::string& key, const Array& values, Observation& found) const;
  std::shared_ptr<LinkAnchor> model_;
  ParameterStatisticsOptions options_;
  DictSummary summary_;
};

}  // namespace rensa::extensions

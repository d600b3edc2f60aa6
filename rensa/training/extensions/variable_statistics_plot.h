// VariableStatisticsPlot: how a model's parameters and gradients are distributed, over a run, as a
// picture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rensa/training/plot.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct VariableStatisticsPlotOptions {
  rensa::detail::NamedOptions named = {};
  /// Points that a curve has at most: when there are more, every second one is left out, and from
  /// then on half as many iterations are looked at.
  std::int64_t max_sample_size = 1000;
  bool report_data = true, report_grad = true;  // of values, and of gradients
  bool plot_mean = true, plot_std = true;       // of means, and of standard deviations
  /// In percent; empty: none. Those at 0, 1, 2 and 3 standard deviations on both sides of a normal
  /// distribution's mean, the least and the greatest.
  std::vector<double> percentile_sigmas = {0, 0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87, 100};
  /// When the picture is drawn.
  training::Trigger trigger = {1, "epoch"};
  std::string filename = "statistics.png";  // or ".svg", in the trainer's folder
  int width = 480, height = 300;            // pixels of each chart
  bool marker = false, grid = true;         // a dot at each point; lines behind the data
};

/// Looks at all elements of its targets together, and at those of their gradients, after an
/// iteration: their mean, standard deviation and percentiles become points of curves over the
/// iterations. Parameters without values and gradients that are not there are left out. What waits
/// is the drawing, and a look at what there is where `max_sample_size` iterations go by without
/// one.
class VariableStatisticsPlot final : public training::Extension {
 public:
  /// Throws ValueError for a filename that ends in neither ".png" nor ".svg", max_sample_size below
  /// 2, a percentile outside of 0 to 100, no trigger, nothing to report and nothing to plot.
  explicit VariableStatisticsPlot(const Link& model, VariableStatisticsPlotOptions options = {});
  explicit VariableStatisticsPlot(Variables targets, VariableStatisticsPlotOptions options = {});
  void operator()(training::Trainer& trainer) override;
  /// The curves so far.
  void members(Visitor& v) override;
  std::string default_name() const override { return "VariableStatisticsPlot"; }

 private:
  void check() const;
  Variables targets() const;
  void take_sample(std::int64_t iteration);
  void fetch();
  void draw(const std::string& folder) const;

  std::shared_ptr<LinkAnchor> model_;  // or
  Variables variables_;
  VariableStatisticsPlotOptions options_;
  /// "data/mean", "grad/percentile/50": the points that are known on the host.
  rensa::detail::Curves curves_;
  /// Points that are still on the device: one element for each of `names`.
  struct Sample {
    std::int64_t iteration;
    std::vector<std::string> names;
    Array values;
  };
  std::vector<Sample> samples_;
  std::int64_t every_ = 1;  // iterations from one point to the next
};

}  // namespace rensa::extensions

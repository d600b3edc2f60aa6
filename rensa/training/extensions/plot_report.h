// PlotReport: curves of what was observed, as a picture.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rensa/training/plot.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct PlotReportOptions {
  std::string x_key = "iteration";  // or "epoch", or what was observed under another key
  training::Trigger trigger = {1, "epoch"};
  std::string filename = "plot.png";  // or ".svg", in the trainer's folder
  PlotOptions plot = {};              // a label that is left out is x_key
  /// Called with the series before they are drawn.
  std::function<void(std::vector<PlotSeries>&)> postprocess = {};
};

/// Adds up what each iteration observes under `y_keys`, on the device; when its trigger fires it
/// takes the means (that waits for the device), adds them to the curves and draws the picture anew.
/// Keys that nobody has reported have no points yet.
class PlotReport final : public training::Extension {
 public:
  /// Throws ValueError for no keys, and for a filename that ends in neither ".png" nor ".svg".
  explicit PlotReport(std::vector<std::string> y_keys, PlotReportOptions options = {});
  void operator()(training::Trainer& trainer) override;
  /// The curves, under Chainer's name, and the sums of the points that are coming.
  void members(Visitor& v) override;
  std::string default_name() const override { return "PlotReport"; }

 private:
  void draw(const std::string& folder) const;
  std::vector<std::string> y_keys_;
  PlotReportOptions options_;
  DictSummary summary_;
  std::map<std::string, std::vector<std::pair<double, double>>> curves_;
};

}  // namespace rensa::extensions

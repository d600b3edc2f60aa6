// Line charts as pictures (SVG).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rensa {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x and y; one that is not finite is a gap
};

struct PlotOptions {
  std::string title = {}, x_label = {}, y_label = {};
  int width = 640, height = 400;      // pixels
  bool log_x = false, log_y = false;  // by powers of 10; points that are not positive are gaps
  bool grid = true, markers = true;
};

/// The chart as the text of an SVG file: a line for each series, axes with round numbers, a legend.
/// Throws ValueError for a width or height below 200 pixels.
std::string plot_svg(const std::vector<PlotSeries>& series, const PlotOptions& options = {});

namespace detail {
/// Round numbers that part [low, high], at most `most` + 1 of them; of `log`, powers of 10 (with 2
/// and 5 times these where there are few).
std::vector<double> ticks(double low, double high, int most, bool log);
}  // namespace detail

}  // namespace rensa

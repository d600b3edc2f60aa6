// Line charts as pictures, and the curves that they are made of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rensa {

/// One line of a chart.
struct PlotSeries {
  std::string name;                               // in the legend
  std::vector<std::pair<double, double>> points;  // x and y; one that is not finite is a gap
};

struct PlotOptions {
  std::string title = {}, x_label = {}, y_label = {};  // above it, below it and to its left
  int width = 640, height = 400;                       // pixels
  bool log_x = false, log_y = false;  // by powers of 10; points that are not positive are gaps
  bool grid = true, markers = true;   // lines behind the data; a dot at each point
  /// From where to where an axis goes; points beyond are gaps. Left out: as far as the points go.
  std::optional<std::pair<double, double>> x_limits = {}, y_limits = {};
};

/// What a picture's file is. A PNG has 2 x 2 of its pixels for each of the options', and letters of
/// its own, which are ASCII's.
enum class PictureFormat { svg, png };

/// The chart as a file: a line for each series, axes with round numbers, a legend. Throws
/// ValueError for a width or height below 200 pixels, and for limits that are no range (of a
/// logarithmic axis, of positive numbers).
std::string plot(const std::vector<PlotSeries>& series, PictureFormat format,
                 const PlotOptions& options = {});

/// One of several charts.
struct PlotPanel {
  std::vector<PlotSeries> series;  // the lines of this chart
  PlotOptions options = {};        // its words and axes
};
/// The charts in one picture, row by row, `columns` in each. They are all as large as their options
/// say, and a row is as high as its highest. Throws ValueError for no columns, and as plot().
std::string plot_grid(const std::vector<PlotPanel>& panels, int columns, PictureFormat format);

/// What the end of a file's name says. Throws ValueError, naming `who`, for another than ".svg" and
/// ".png".
PictureFormat picture_format(const char* who, const std::string& filename);

namespace detail {
/// Curves by name as JSON, for files, and back; throws SerializationError, naming `who`.
using Curves = std::map<std::string, std::vector<std::pair<double, double>>>;
std::string curves_to_json(const Curves& curves);
Curves curves_from_json(const std::string& who, const std::string& text);

/// Round numbers that part [low, high], at most `most` + 1 of them; of `log`, powers of 10 (with 2
/// and 5 times these where there are few).
std::vector<double> ticks(double low, double high, int most, bool log);
}  // namespace detail

}  // namespace rensa

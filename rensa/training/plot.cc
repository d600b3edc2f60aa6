// Drawing line charts.
#include "rensa/training/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "rensa/core/error.h"
#include "rensa/training/painter.h"

namespace rensa {

namespace {

// Okabe and Ito's colours, which those see apart who do not see all colours.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#000000"};
constexpr const char* kBlack = "#000000";
constexpr double kLine = 16;  // pixels from one line of text to the next

using Limits = std::optional<std::pair<double, double>>;

/// One axis: from numbers to pixels.
class Axis {
 public:
  Axis(bool log, const Limits& limits, double from, double to)
      : log_(log), limits_(limits), from_(from), to_(to) {}

  bool shows(double value) const {
    if (limits_ && (value < limits_->first || value > limits_->second)) return false;
    return std::isfinite(value) && (!log_ || value > 0);
  }
  void take_in(double value) {
    low_ = any_ ? std::min(low_, value) : value;
    high_ = any_ ? std::max(high_, value) : value;
    any_ = true;
  }
  /// When all values are known: a range that is not empty, out to the next ticks where `round`.
  void close(int most_ticks, bool round) {
    if (limits_) {
      std::tie(low_, high_) = *limits_;
      ticks_ = detail::ticks(low_, high_, most_ticks, log_);
      return;
    }
    if (!any_) low_ = log_ ? 1 : 0, high_ = log_ ? 10 : 1;
    if (low_ == high_ && log_) low_ /= 2, high_ *= 2;
    if (low_ == high_) {
      double about = low_ == 0 ? 1 : std::abs(low_) * 0.1;
      low_ -= about, high_ += about;
    }
    ticks_ = detail::ticks(low_, high_, most_ticks, log_);
    if (!round || ticks_.size() < 2 || log_) return;
    double step = ticks_[1] - ticks_[0];
    if (ticks_.front() > low_) ticks_.insert(ticks_.begin(), ticks_.front() - step);
    if (ticks_.back() < high_) ticks_.push_back(ticks_.back() + step);
    low_ = ticks_.front(), high_ = ticks_.back();
  }
  double pixel(double value) const {
    return from_ + (place(value) - place(low_)) / (place(high_) - place(low_)) * (to_ - from_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  double place(double value) const { return log_ ? std::log10(value) : value; }
  bool log_, any_ = false;
  Limits limits_;
  double from_, to_, low_ = 0, high_ = 0;
  std::vector<double> ticks_;
};

/// A chart while it is drawn.
class Chart {
 public:
  Chart(const std::vector<PlotSeries>& series, const PlotOptions& options)
      : series_(series),
        options_(options),
        top_(options.title.empty() ? 12 : 32),
        bottom_(options.height - (options.x_label.empty() ? 28. : 46.)),
        right_(options.width - 16.),
        x_(options.log_x, options.x_limits, kLeft, right_),
        y_(options.log_y, options.y_limits, bottom_, top_) {
    for (const PlotSeries& one : series) {
      for (auto [x, y] : one.points) {
        if (x_.shows(x) && y_.shows(y)) x_.take_in(x), y_.take_in(y);
      }
    }
    x_.close(8, false), y_.close(6, true);
  }

  void draw(Painter& painter) {
    painter_ = &painter;
    axes();
    for (std::size_t i = 0; i < series_.size(); ++i) line(series_[i], colour(i));
    legend();
  }

 private:
  using Anchor = Painter::Anchor;
  static constexpr double kLeft = 64;
  static const char* colour(std::size_t i) { return kColours[i % kColours.size()]; }

  void rule(double x1, double y1, double x2, double y2, const char* stroke) {
    painter_->line(x1, y1, x2, y2, stroke, 1);
  }

  void axes() {
    for (double tick : x_.ticks()) {
      double x = x_.pixel(tick);
      if (options_.grid) rule(x, top_, x, bottom_, "#e0e0e0");
      rule(x, bottom_, x, bottom_ + 4, kBlack);
      painter_->text(x, bottom_ + kLine + 2, fmt::format("{:.10g}", tick), {Anchor::middle});
    }
    for (double tick : y_.ticks()) {
      double y = y_.pixel(tick);
      if (options_.grid) rule(kLeft, y, right_, y, "#e0e0e0");
      rule(kLeft - 4, y, kLeft, y, kBlack);
      painter_->text(kLeft - 8, y + 4, fmt::format("{:.6g}", tick), {Anchor::end});
    }
    rule(kLeft, bottom_, right_, bottom_, kBlack), rule(kLeft, top_, kLeft, bottom_, kBlack);
    double middle = (kLeft + right_) / 2;
    if (!options_.title.empty()) {
      painter_->text(middle, 20, options_.title, {Anchor::middle, true});
    }
    if (!options_.x_label.empty()) {
      painter_->text(middle, options_.height - 8., options_.x_label, {Anchor::middle});
    }
    if (!options_.y_label.empty()) {
      painter_->text(14, (top_ + bottom_) / 2, options_.y_label, {Anchor::middle, false, true});
    }
  }

  void line(const PlotSeries& one, const char* stroke) {
    std::vector<Painter::Points> runs;
    bool gap = true;
    for (auto [x, y] : one.points) {
      if (!x_.shows(x) || !y_.shows(y)) {
        gap = true;
        continue;
      }
      if (gap) runs.emplace_back();
      gap = false;
      runs.back().emplace_back(x_.pixel(x), y_.pixel(y));
    }
    if (runs.empty()) return;
    painter_->path(runs, stroke, 1.5);
    if (!options_.markers || one.points.size() > 100) return;
    for (const Painter::Points& run : runs) {
      for (auto [x, y] : run) painter_->circle(x, y, 2.5, stroke);
    }
  }

  /// In the corner at the right that has the fewest points below it.
  void legend() {
    std::size_t longest = 0;
    for (const PlotSeries& one : series_) longest = std::max(longest, one.name.size());
    if (longest == 0) return;
    double width = 34 + 6.6 * static_cast<double>(longest),
           height = 8 + kLine * static_cast<double>(series_.size());
    double left = right_ - width - 6;
    double top = crowd(left, top_, top_ + height) <= crowd(left, bottom_ - height, bottom_)
                     ? top_ + 6
                     : bottom_ - height - 6;
    painter_->box(left, top, width, height, 0.85, "#c0c0c0");
    for (std::size_t i = 0; i < series_.size(); ++i) {
      double y = top + kLine * (static_cast<double>(i) + 0.75);
      painter_->line(left + 6, y, left + 24, y, colour(i), 2);
      painter_->text(left + 29, y + 4, series_[i].name, {});
    }
  }
  std::int64_t crowd(double left, double top, double bottom) const {
    std::int64_t count = 0;
    for (const PlotSeries& one : series_) {
      count += std::ranges::count_if(one.points, [&](const std::pair<double, double>& point) {
        auto [x, y] = point;
        return x_.shows(x) && y_.shows(y) && x_.pixel(x) >= left && y_.pixel(y) >= top &&
               y_.pixel(y) <= bottom;
      });
    }
    return count;
  }

  const std::vector<PlotSeries>& series_;
  const PlotOptions& options_;
  double top_, bottom_, right_;
  Axis x_, y_;
  Painter* painter_ = nullptr;
};

std::vector<double> powers(double low, double high, int most) {
  auto first = static_cast<int>(std::floor(std::log10(low))),
       last = static_cast<int>(std::ceil(std::log10(high)));
  int apart = std::max(1, (last - first + most - 1) / most);
  bool few = last - first <= 3;
  std::vector<double> ticks;
  for (int power = first; power <= last; power += apart) {
    for (double digit : {1., 2., 5.}) {
      double tick = digit * std::pow(10., power);
      if ((digit == 1 || few) && tick >= low && tick <= high) ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace

std::vector<double> detail::ticks(double low, double high, int most, bool log) {
  if (log) return powers(low, high, most);
  double rough = (high - low) / most, unit = std::pow(10., std::floor(std::log10(rough)));
  double step = 10 * unit;
  for (double digit : {5., 2., 1.}) {
    if (digit * unit >= rough * (1 - 1e-9)) step = digit * unit;
  }
  std::vector<double> ticks;
  auto first = static_cast<std::int64_t>(std::ceil(low / step - 1e-9)),
       last = static_cast<std::int64_t>(std::floor(high / step + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

namespace {

void check_limits(const char* who, const char* axis, const Limits& limits, bool log) {
  if (!limits) return;
  auto [low, high] = *limits;
  if (std::isfinite(low) && std::isfinite(high) && low < high && (!log || low > 0)) return;
  throw ValueError(fmt::format("{}: {}_limits of {} and {}; give a lower and a higher {}number",
                               who, axis, low, high, log ? "positive " : ""));
}

void check_options(const char* who, const PlotOptions& options) {
  check_limits(who, "x", options.x_limits, options.log_x);
  check_limits(who, "y", options.y_limits, options.log_y);
  if (options.width >= 200 && options.height >= 200) return;
  throw ValueError(fmt::format("{}: a picture of {} x {} pixels; give 200 or more of each", who,
                               options.width, options.height));
}

std::unique_ptr<Painter> painter_of(PictureFormat format, int width, int height) {
  return format == PictureFormat::svg ? svg_painter(width, height) : png_painter(width, height);
}

}  // namespace

std::string plot(const std::vector<PlotSeries>& series, PictureFormat format,
                 const PlotOptions& options) {
  check_options("plot", options);
  std::unique_ptr<Painter> painter = painter_of(format, options.width, options.height);
  Chart(series, options).draw(*painter);
  return painter->str();
}

std::string plot_grid(const std::vector<PlotPanel>& panels, int columns, PictureFormat format) {
  if (columns < 1) throw ValueError(fmt::format("plot_grid: {} columns", columns));
  struct Place {
    int x, y;
  };
  std::vector<Place> places;
  int width = 0, x = 0, y = 0, row_height = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const PlotOptions& options = panels[i].options;
    check_options("plot_grid", options);
    if (i > 0 && i % static_cast<std::size_t>(columns) == 0) {
      y += row_height;
      x = row_height = 0;
    }
    places.push_back({x, y});
    x += options.width;
    width = std::max(width, x);
    row_height = std::max(row_height, options.height);
  }
  std::unique_ptr<Painter> painter = painter_of(format, width, y + row_height);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const PlotOptions& options = panels[i].options;
    painter->begin_part(places[i].x, places[i].y, options.width, options.height);
    Chart(panels[i].series, options).draw(*painter);
    painter->end_part();
  }
  return painter->str();
}

PictureFormat picture_format(const char* who, const std::string& filename) {
  if (filename.ends_with(".svg")) return PictureFormat::svg;
  if (filename.ends_with(".png")) return PictureFormat::png;
  throw ValueError(fmt::format("{}: the filename \"{}\"; pictures are \"....svg\" or \"....png\"",
                               who, filename));
}

std::string detail::curves_to_json(const Curves& curves) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, points] : curves) json[key] = points;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

detail::Curves detail::curves_from_json(const std::string& who, const std::string& text) {
  // JSON has null for a number that is not finite.
  auto number = [](const nlohmann::json& json) {
    return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  };
  Curves curves;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    for (const auto& [key, points] : json.items()) {
      for (const nlohmann::json& point : points) {
        curves[key].emplace_back(number(point.at(0)), number(point.at(1)));
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw SerializationError(
        fmt::format("{}: the curves in the file cannot be read: {}", who, error.what()));
  }
  return curves;
}

}  // namespace rensa

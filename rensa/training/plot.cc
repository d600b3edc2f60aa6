// Drawing line charts.
#include "rensa/training/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "rensa/core/error.h"
#include "rensa/core/xml.h"

namespace rensa {

namespace {

// Okabe and Ito's colours, which those see apart who do not see all colours.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#000000"};
constexpr double kFont = 12, kLine = 16;  // pixels: of letters, from one line to the next

/// One axis: from numbers to pixels.
class Axis {
 public:
  Axis(bool log, double from, double to) : log_(log), from_(from), to_(to) {}

  bool shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  void take_in(double value) {
    low_ = any_ ? std::min(low_, value) : value;
    high_ = any_ ? std::max(high_, value) : value;
    any_ = true;
  }
  /// When all values are known: a range that is not empty, out to the next ticks where `round`.
  void close(int most_ticks, bool round) {
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
  double from_, to_, low_ = 0, high_ = 0;
  std::vector<double> ticks_;
};

std::string svg_head(int width, int height, const std::string& more = {}) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\"{3} width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height, kFont, more);
}

/// A chart while it is drawn.
class Chart {
 public:
  Chart(const std::vector<PlotSeries>& series, const PlotOptions& options)
      : series_(series),
        options_(options),
        top_(options.title.empty() ? 12 : 32),
        bottom_(options.height - (options.x_label.empty() ? 28. : 46.)),
        right_(options.width - 16.),
        x_(options.log_x, kLeft, right_),
        y_(options.log_y, bottom_, top_) {
    for (const PlotSeries& one : series) {
      for (auto [x, y] : one.points) {
        if (x_.shows(x) && y_.shows(y)) x_.take_in(x), y_.take_in(y);
      }
    }
    x_.close(8, false), y_.close(6, true);
  }

  /// A picture, or with a place a part of another one.
  std::string str(const std::string& place = {}) {
    out_ = svg_head(options_.width, options_.height, place);
    axes();
    for (std::size_t i = 0; i < series_.size(); ++i) line(series_[i], colour(i));
    legend();
    return out_ + "</svg>\n";
  }

 private:
  static constexpr double kLeft = 64;
  static const char* colour(std::size_t i) { return kColours[i % kColours.size()]; }

  void text(double x, double y, const char* anchor, const std::string& words,
            const std::string& more = {}) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                        anchor, more, detail::xml_escaped(words));
  }
  void rule(double x1, double y1, double x2, double y2, const char* stroke) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, stroke);
  }

  void axes() {
    for (double tick : x_.ticks()) {
      double x = x_.pixel(tick);
      if (options_.grid) rule(x, top_, x, bottom_, "#e0e0e0");
      rule(x, bottom_, x, bottom_ + 4, "black");
      text(x, bottom_ + kLine + 2, "middle", fmt::format("{:.10g}", tick));
    }
    for (double tick : y_.ticks()) {
      double y = y_.pixel(tick);
      if (options_.grid) rule(kLeft, y, right_, y, "#e0e0e0");
      rule(kLeft - 4, y, kLeft, y, "black");
      text(kLeft - 8, y + 4, "end", fmt::format("{:.6g}", tick));
    }
    rule(kLeft, bottom_, right_, bottom_, "black"), rule(kLeft, top_, kLeft, bottom_, "black");
    if (!options_.title.empty()) {
      text((kLeft + right_) / 2, 20, "middle", options_.title, " font-weight=\"bold\"");
    }
    if (!options_.x_label.empty()) {
      text((kLeft + right_) / 2, options_.height - 8., "middle", options_.x_label);
    }
    if (!options_.y_label.empty()) {
      double middle = (top_ + bottom_) / 2;
      text(14, middle, "middle", options_.y_label,
           fmt::format(" transform=\"rotate(-90 14 {:.1f})\"", middle));
    }
  }

  void line(const PlotSeries& one, const char* stroke) {
    std::string path, marks;
    bool gap = true;
    for (auto [x, y] : one.points) {
      if (!x_.shows(x) || !y_.shows(y)) {
        gap = true;
        continue;
      }
      path += fmt::format("{}{:.2f} {:.2f}", gap ? "M" : "L", x_.pixel(x), y_.pixel(y));
      gap = false;
      if (!options_.markers || one.points.size() > 100) continue;
      marks += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.5\" fill=\"{}\"/>\n",
                           x_.pixel(x), y_.pixel(y), stroke);
    }
    if (path.empty()) return;
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n{}",
                        path, stroke, marks);
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
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"white\" "
        "fill-opacity=\"0.85\" stroke=\"#c0c0c0\"/>\n",
        left, top, width, height);
    for (std::size_t i = 0; i < series_.size(); ++i) {
      double y = top + kLine * (static_cast<double>(i) + 0.75);
      out_ += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
          "stroke-width=\"2\"/>\n",
          left + 6, y, left + 24, y, colour(i));
      text(left + 29, y + 4, "start", series_[i].name);
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
  std::string out_;
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

void check_size(const char* who, const PlotOptions& options) {
  if (options.width >= 200 && options.height >= 200) return;
  throw ValueError(fmt::format("{}: a picture of {} x {} pixels; give 200 or more of each", who,
                               options.width, options.height));
}

}  // namespace

std::string plot_svg(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  check_size("plot_svg", options);
  return Chart(series, options).str();
}

std::string plot_grid_svg(const std::vector<PlotPanel>& panels, int columns) {
  if (columns < 1) throw ValueError(fmt::format("plot_grid_svg: {} columns", columns));
  std::string charts;
  int width = 0, x = 0, y = 0, row_height = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const PlotPanel& panel = panels[i];
    check_size("plot_grid_svg", panel.options);
    if (i > 0 && i % static_cast<std::size_t>(columns) == 0) {
      y += row_height;
      x = row_height = 0;
    }
    charts += Chart(panel.series, panel.options).str(fmt::format(" x=\"{}\" y=\"{}\"", x, y));
    x += panel.options.width;
    width = std::max(width, x);
    row_height = std::max(row_height, panel.options.height);
  }
  return svg_head(width, y + row_height) + charts + "</svg>\n";
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

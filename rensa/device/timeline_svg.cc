// Timelines as pictures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/xml.h"
#include "rensa/device/timeline.h"
#include "rensa/device/timeline_rows.h"

namespace rensa::timeline {

namespace {

constexpr double kLeft = 130, kRight = 20, kTop = 64, kLane = 18, kGap = 8, kAxis = 34;
constexpr double kCharacter = 6.1;  // width of one, at the bars' font size
constexpr double kNarrow = 0.5;     // bars below this many pixels share one

struct Style {
  Kind kind;
  const char* colour;
  const char* name;
};
constexpr std::array<Style, 8> kStyles{{
    {Kind::operation, "#d9c27a", "library"},
    {Kind::range, "#9ed2e6", "range"},
    {Kind::wait, "#d65f5f", "wait"},
    {Kind::kernel, "#5b8bd0", "kernel"},
    {Kind::copy_to_device, "#6bbf6b", "host to device"},
    {Kind::copy_to_host, "#ee9a5a", "device to host"},
    {Kind::copy_on_device, "#a889c9", "device to device"},
    {Kind::memset, "#a0a0a0", "memset"},
}};

const Style& style_of(Kind kind) {
  for (const Style& style : kStyles) {
    if (style.kind == kind) return style;
  }
  return kStyles.front();
}

/// 1, 2 or 5 times a power of ten, of which about ten fit into `span`.
double tick_step(double span) {
  double step = std::pow(10.0, std::floor(std::log10(span / 10)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (span / (step * factor) <= 12) return step * factor;
  }
  return step * 10;
}

std::string row_name(Device device, std::int64_t row) {
  if (device.is_cuda()) return fmt::format("{} stream {}", device.str(), row);
  return row == 0 ? "waits" : fmt::format("thread {}", row);
}

/// A row's records one above the other where they overlap.
struct Row {
  std::vector<const Record*> records;
  std::vector<std::size_t> lane;  // of each
  std::size_t lanes = 1;

  void arrange() {
    lane = arrange_lanes(records);
    for (std::size_t used : lane) lanes = std::max(lanes, used + 1);
  }
};

class Picture {
 public:
  Picture(const std::vector<Record>& records, const DrawOptions& options) : options_(options) {
    std::int64_t last = 0;
    for (const Record& record : records) last = std::max(last, record.end_ns);
    from_ms_ = options.from_ms;
    to_ms_ = options.to_ms >= 0 ? options.to_ms : static_cast<double>(last) / 1e6;
    if (!(to_ms_ > from_ms_)) to_ms_ = from_ms_ + 1e-3;
    for (const Record& record : records) {
      if (ms(record.end_ns) < from_ms_ || ms(record.begin_ns) > to_ms_) continue;
      int place = record.device.is_cuda() ? record.device.index + 1 : 0;
      rows_[{place, record.row}].records.push_back(&record);
      kinds_.insert(record.kind);
    }
    for (auto& [place, row] : rows_) row.arrange();
  }

  std::string text() {
    double y = kTop;
    for (auto& [place, row] : rows_) {
      const Record& first = *row.records.front();
      double height = kLane * static_cast<double>(row.lanes);
      body_ += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
                           y + kLane - 5, detail::xml_escaped(row_name(first.device, first.row)));
      body_ += fmt::format(
          "<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill=\"#f4f4f4\"/>\n",
          kLeft, y, plot_width(), height);
      draw_bars(row, y);
      y += height + kGap;
    }
    draw_axis(y);
    double height = y + kAxis;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" "
               "viewBox=\"0 0 {0} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
               options_.width, height) +
           head() + body_ + "</svg>\n";
  }

 private:
  static double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }
  double plot_width() const { return std::max(options_.width - kLeft - kRight, 100.0); }
  double x_of(double at_ms) const {
    return kLeft + (at_ms - from_ms_) / (to_ms_ - from_ms_) * plot_width();
  }

  std::string head() const {
    std::string text = fmt::format("<text x=\"{}\" y=\"20\" font-size=\"14\">{}</text>\n", kLeft,
                                   detail::xml_escaped(options_.title));
    double x = kLeft;
    for (const Style& style : kStyles) {
      if (!kinds_.count(style.kind)) continue;
      text += fmt::format(
          "<rect x=\"{0:.1f}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{1}\"/>"
          "<text x=\"{2:.1f}\" y=\"44\">{3}</text>\n",
          x, style.colour, x + 16, style.name);
      x += 34 + kCharacter * static_cast<double>(std::string(style.name).size());
    }
    return text;
  }

  void draw_bars(const Row& row, double y) {
    std::vector<double> drawn(row.lanes, -1);  // where the last bar of each lane ends
    for (std::size_t i = 0; i < row.records.size(); ++i) {
      const Record& record = *row.records[i];
      double left = std::max(x_of(ms(record.begin_ns)), kLeft);
      double right = std::min(x_of(ms(record.end_ns)), kLeft + plot_width());
      if (right - left < kNarrow && right < drawn[row.lane[i]]) continue;
      right = std::max(right, left + kNarrow);
      drawn[row.lane[i]] = right;
      draw_bar(record, left, right - left, y + kLane * static_cast<double>(row.lane[i]));
    }
  }

  void draw_bar(const Record& record, double x, double width, double y) {
    std::string tip = fmt::format("{}: {:.3f} ms at {:.3f} ms", record.name,
                                  ms(record.end_ns - record.begin_ns), ms(record.begin_ns));
    if (!record.operation.empty()) tip += ", of " + record.operation;
    if (record.bytes > 0) tip += fmt::format(", {} bytes", record.bytes);
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" "
        "fill=\"{}\"><title>{}</title></rect>\n",
        x, y + 1, width, kLane - 2, style_of(record.kind).colour, detail::xml_escaped(tip));
    // A kernel is best known by the operation that it works for.
    const std::string& name = record.operation.empty() ? record.name : record.operation;
    auto fits = static_cast<std::size_t>(std::max(width - 6, 0.0) / kCharacter);
    if (fits < 3 || (name.size() > fits && fits < 6)) return;
    std::string shown = name.size() <= fits ? name : name.substr(0, fits - 2) + "..";
    body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" font-size=\"10\">{}</text>\n", x + 3,
                         y + kLane - 5, detail::xml_escaped(shown));
  }

  void draw_axis(double y) {
    double step = tick_step(to_ms_ - from_ms_);
    int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
    auto first = static_cast<std::int64_t>(std::ceil(from_ms_ / step));
    auto last = static_cast<std::int64_t>(std::floor(to_ms_ / step + 1e-6));
    for (std::int64_t i = first; i <= last; ++i) {
      double tick = static_cast<double>(i) * step;
      body_ += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" "
          "stroke=\"#cccccc\" stroke-width=\"0.5\"/>"
          "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:.{5}f}"
          "</text>\n",
          x_of(tick), kTop - 4, y, y + 14, tick, decimals);
    }
    body_ += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">ms</text>\n", kLeft - 22,
                         y + 14);
  }

  const DrawOptions& options_;
  double from_ms_, to_ms_;
  std::map<std::pair<int, std::int64_t>, Row> rows_;
  std::set<Kind> kinds_;
  std::string body_;
};

}  // namespace

void draw(const std::vector<Record>& records, const std::string& picture,
          const DrawOptions& options) {
  detail::write_whole_file(picture, Picture(records, options).text());
}

void draw(const std::string& trace, const std::string& picture, const DrawOptions& options) {
  draw(read(trace), picture, options);
}

}  // namespace rensa::timeline

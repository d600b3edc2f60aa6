// Painting as pixels: the colour of a line or dot covers a pixel as far as its middle is within.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <tuple>

#include "rensa/array/creation.h"
#include "rensa/data/images/png.h"
#include "rensa/training/painter.h"
#include "rensa/training/stroke_font.h"

namespace rensa {

namespace {

constexpr int kScale = 2;      // pixels of the file, of one of the places'
constexpr double kFont = 12;   // as SVG's
constexpr double kThin = 1.1;  // strokes of letters
constexpr double kBold = 1.8;

struct Colour {
  double red, green, blue;
};
Colour colour_of(const char* name) {
  unsigned long rgb = std::strtoul(name + 1, nullptr, 16);
  return {static_cast<double>(rgb >> 16), static_cast<double>(rgb >> 8 & 255),
          static_cast<double>(rgb & 255)};
}

/// From (x, y) to the line between two points.
double distance(double x, double y, double x1, double y1, double x2, double y2) {
  double dx = x2 - x1, dy = y2 - y1, length = dx * dx + dy * dy;
  double t = length > 0 ? std::clamp(((x - x1) * dx + (y - y1) * dy) / length, 0., 1.) : 0;
  return std::hypot(x - x1 - t * dx, y - y1 - t * dy);
}

class PngPainter final : public Painter {
 public:
  PngPainter(int width, int height)
      : width_(width * kScale),
        height_(height * kScale),
        pixels_(xp::full({height_, width_, 3}, 255, uint8, cpu())),
        covered_(static_cast<std::size_t>(width_ * height_)) {}

  void begin_part(int x, int y, int, int) override { left_ = x, top_ = y; }
  void end_part() override { left_ = top_ = 0; }

  void text(double x, double y, std::string_view words, const TextStyle& style) override {
    StrokedText text = stroked(words, kFont);
    double shift = style.anchor == Anchor::start    ? 0
                   : style.anchor == Anchor::middle ? text.width / 2
                                                    : text.width;
    std::vector<Points> runs = std::move(text.strokes);
    for (Points& run : runs) {
      for (auto& [across, up] : run) {
        double along = across - shift;
        std::tie(across, up) =
            style.upward ? std::pair(x - up, y - along) : std::pair(x + along, y - up);
      }
    }
    path(runs, "#000000", style.bold ? kBold : kThin);
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width) override {
    path({{{x1, y1}, {x2, y2}}}, colour, width);
  }
  void path(const std::vector<Points>& runs, const char* colour, double width) override {
    Box touched;
    for (const Points& run : runs) {
      for (std::size_t i = 1; i < run.size(); ++i) {
        cover(run[i - 1].first, run[i - 1].second, run[i].first, run[i].second, width / 2, touched);
      }
    }
    blend(touched, colour_of(colour), 1);
  }
  void circle(double x, double y, double radius, const char* colour) override {
    Box touched;
    cover(x, y, x, y, radius, touched);
    blend(touched, colour_of(colour), 1);
  }
  void box(double x, double y, double width, double height, double opacity,
           const char* stroke) override {
    Box inner{pixel(x, left_), pixel(y, top_), pixel(x + width, left_), pixel(y + height, top_)};
    clip(inner);
    for (int row = inner.top; row < inner.bottom; ++row) {
      std::fill_n(covered_.begin() + row * width_ + inner.left, inner.right - inner.left, 1.f);
    }
    blend(inner, {255, 255, 255}, opacity);
    path({{{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}, {x, y}}}, stroke, 1);
  }
  std::string str() override { return images::encode_png(pixels_); }

 private:
  /// Pixels from left and top on, before right and bottom.
  struct Box {
    int left = 1 << 30, top = 1 << 30, right = 0, bottom = 0;
  };
  static int pixel(double place, int origin) {
    return static_cast<int>(std::lround((place + origin) * kScale));
  }
  void clip(Box& box) const {
    box = {std::max(box.left, 0), std::max(box.top, 0), std::min(box.right, width_),
           std::min(box.bottom, height_)};
  }

  /// Notes how far pixels are covered by a line as wide as twice `radius`, with round ends.
  void cover(double x1, double y1, double x2, double y2, double radius, Box& touched) {
    auto scaled = [](double place, int origin) { return (place + origin) * kScale; };
    x1 = scaled(x1, left_), x2 = scaled(x2, left_), y1 = scaled(y1, top_), y2 = scaled(y2, top_);
    radius *= kScale;
    double reach = radius + 1;
    Box box{static_cast<int>(std::min(x1, x2) - reach), static_cast<int>(std::min(y1, y2) - reach),
            static_cast<int>(std::max(x1, x2) + reach) + 1,
            static_cast<int>(std::max(y1, y2) + reach) + 1};
    clip(box);
    for (int row = box.top; row < box.bottom; ++row) {
      for (int column = box.left; column < box.right; ++column) {
        double inside = radius + 0.5 - distance(column + 0.5, row + 0.5, x1, y1, x2, y2);
        float& covered = covered_[static_cast<std::size_t>(row * width_ + column)];
        covered = std::max(covered, static_cast<float>(std::clamp(inside, 0., 1.)));
      }
    }
    touched = {std::min(touched.left, box.left), std::min(touched.top, box.top),
               std::max(touched.right, box.right), std::max(touched.bottom, box.bottom)};
  }

  /// Lays the colour over what is covered, and begins anew.
  void blend(const Box& touched, Colour colour, double opacity) {
    auto* pixels = static_cast<std::uint8_t*>(pixels_.data());
    for (int row = touched.top; row < touched.bottom; ++row) {
      for (int column = touched.left; column < touched.right; ++column) {
        auto at = static_cast<std::size_t>(row * width_ + column);
        double share = covered_[at] * opacity;
        covered_[at] = 0;
        std::uint8_t* rgb = pixels + 3 * at;
        for (int i = 0; double value : {colour.red, colour.green, colour.blue}) {
          rgb[i] = static_cast<std::uint8_t>(std::lround(rgb[i] + share * (value - rgb[i])));
          ++i;
        }
      }
    }
  }

  int width_, height_;
  Array pixels_;
  std::vector<float> covered_;  // of each pixel 0 to 1, by what is being drawn
  int left_ = 0, top_ = 0;      // of the part
};

}  // namespace

std::unique_ptr<Painter> png_painter(int width, int height) {
  return std::make_unique<PngPainter>(width, height);
}

}  // namespace rensa

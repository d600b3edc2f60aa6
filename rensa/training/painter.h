// Painters: what charts are drawn with, as an SVG file or as pixels.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rensa {

/// Draws on a white picture. Places are pixels from the upper left corner, colours "#rrggbb".
class Painter {
 public:
  enum class Anchor { start, middle, end };
  struct TextStyle {
    Anchor anchor = Anchor::start;
    bool bold = false, upward = false;  // upward: turned by a quarter, from below to above
  };
  using Points = std::vector<std::pair<double, double>>;

  virtual ~Painter() = default;
  /// What is drawn until end_part() lies from (x, y) on, on a white ground of its own.
  virtual void begin_part(int x, int y, int width, int height) = 0;
  virtual void end_part() = 0;
  /// `words` with the left end, the middle or the right end of their base line at (x, y).
  virtual void text(double x, double y, std::string_view words, const TextStyle& style) = 0;
  virtual void line(double x1, double y1, double x2, double y2, const char* colour,
                    double width) = 0;
  /// One line through the points of each run.
  virtual void path(const std::vector<Points>& runs, const char* colour, double width) = 0;
  virtual void circle(double x, double y, double radius, const char* colour) = 0;
  /// White, so opaque, with a line around it.
  virtual void box(double x, double y, double width, double height, double opacity,
                   const char* stroke) = 0;
  /// The file.
  virtual std::string str() = 0;
};

std::unique_ptr<Painter> svg_painter(int width, int height);
/// 2 x 2 pixels of the file are one of the places'. Text is drawn by strokes (stroke_font.h).
std::unique_ptr<Painter> png_painter(int width, int height);

}  // namespace rensa

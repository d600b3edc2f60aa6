// A font of strokes, for pictures that are drawn where no other font need be.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rensa {

/// Text as lines: places to the right of its beginning and above its base line, in pixels for
/// letters as high as those of a font of `size` pixels.
struct StrokedText {
  /// A line through the points of each; one whose points are the same place is a dot.
  std::vector<std::vector<std::pair<double, double>>> strokes;
  double width = 0;
};
/// `words` is UTF-8; what is not ASCII is drawn as "?".
StrokedText stroked(std::string_view words, double size);

}  // namespace rensa

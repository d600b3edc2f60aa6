// Arrays as text.
#pragma once

#include <string>

#include "rensa/array/array.h"

namespace rensa::xp {

/// numpy.array2string's arguments.
struct PrintOptions {
  int max_line_width = 75;
  int precision = 8;  // digits after the point, fewer where they tell the numbers apart
  bool suppress_small = false;
  std::string separator = " ";
  std::string prefix = {};        // what the caller writes in front: later lines are indented by it
  std::int64_t threshold = 1000;  // more elements are shown by the edges
  int edgeitems = 3;
};

/// The elements in brackets. Waits for the device, as the others. Throws ValueError.
std::string array2string(const Array& a, const PrintOptions& options = {});
/// What array2string makes of it: "[0 1 2]"; of a 0-d array the number: "2.0", "(1+2j)".
std::string array_str(const Array& a);
/// With the dtype and the device, what Array::str() gives: "array([0, 1, 2], dtype=int64,
/// device='cpu')".
std::string array_repr(const Array& a);

}  // namespace rensa::xp

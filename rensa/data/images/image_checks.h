// What the functions on pictures have in common.
#pragma once

#include <cstdint>

#include "rensa/array/array.h"

namespace rensa::transforms {

/// Throws as rensa/data/images/image_transforms.h says of all of its functions.
void check_image(const char* operation, const Array& img);

/// A picture's planes for loops: rows without gaps between their pixels.
struct Planes {
  Array array;  // what holds the pixels
  std::int64_t channels, height, width;
  std::int64_t plane, row;  // elements from one to the next
};
/// Those of `img`, or of a copy where its pixels do not stand side by side.
Planes planes_of(const Array& img);

}  // namespace rensa::transforms

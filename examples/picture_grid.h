// Pictures that a network has drawn, as a file.
#pragma once

#include <rensa/array.h>
#include <rensa/data/images/write_image.h>

#include <string>

/// Writes pictures x (rows * columns, channels, height, width) of 1 or 3 channels in [0, 1], side
/// by side, as a PNG file. Waits for the device.
inline void write_picture_grid(const std::string& path, const rensa::Array& x, std::int64_t rows) {
  using namespace rensa;
  std::int64_t n = x.shape(0), channels = x.shape(1), height = x.shape(2), width = x.shape(3);
  Array grid = x.reshape({rows, n / rows, channels, height, width}).transpose({2, 0, 3, 1, 4});
  grid = grid.astype(float32).reshape({channels, rows * height, n / rows * width});
  images::write_png(path, xp::clip(grid * 255.f, 0, 255).astype(uint8));
}

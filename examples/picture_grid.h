// Pictures that a network has drawn, as a file.
#pragma once

#include <rensa/array.h>

#include <fstream>
#include <string>

/// Writes pictures x (rows * columns, channels, height, width) of 1 or 3 channels in [0, 1], side
/// by side, as a PGM or PPM file, which most viewers show. Waits for the device.
inline void write_picture_grid(const std::string& path, const rensa::Array& x, std::int64_t rows) {
  using namespace rensa;
  std::int64_t n = x.shape(0), channels = x.shape(1), height = x.shape(2), width = x.shape(3);
  Array grid = x.to(cpu()).astype(float32).reshape({rows, n / rows, channels, height, width});
  grid = xp::clip(grid.transpose({0, 3, 1, 4, 2}) * 255.f, 0, 255).astype(uint8);
  std::ofstream file(path, std::ios::binary);
  file << (channels == 1 ? "P5 " : "P6 ") << n / rows * width << " " << rows * height << " 255\n";
  for (std::uint8_t value : grid.to_vector<std::uint8_t>()) file.put(static_cast<char>(value));
  if (!file) throw SerializationError(path + " cannot be written");
}

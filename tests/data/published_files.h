// Small files in the shape of published data sets, and where they are looked for.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>

namespace rensa::testing {

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string idx(std::uint32_t magic, std::initializer_list<std::uint32_t> shape,
                       const std::string& data) {
  std::string bytes = big_endian(magic);
  for (std::uint32_t extent : shape) bytes += big_endian(extent);
  return bytes + data;
}

inline void write_gz(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

inline void write_small_mnist(const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::string pixels(28 * 28, '\xff');
  write_gz(folder + "/train-images-idx3-ubyte.gz", idx(2051, {2, 28, 28}, pixels + pixels));
  write_gz(folder + "/train-labels-idx1-ubyte.gz", idx(2049, {2}, std::string("\x03\x09", 2)));
  write_gz(folder + "/t10k-images-idx3-ubyte.gz", idx(2051, {1, 28, 28}, pixels));
  write_gz(folder + "/t10k-labels-idx1-ubyte.gz", idx(2049, {1}, std::string("\x07", 1)));
}

}  // namespace rensa::testing

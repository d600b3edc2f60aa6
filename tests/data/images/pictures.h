// Tests that decode pictures, and PNG files of their making.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>

#include "tests/data/published_files.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::testing {

/// Skipped in a build without libjpeg and libpng.
class ImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RENSA_TEST_IMAGES) GTEST_SKIP() << "this build reads no pictures (RENSA_IMAGES)";
  }
};

/// The bytes of a file of tests/answers/images.
inline std::string picture(const std::string& name) {
  return read_file(data_file("images/" + name.substr(name.size() - 3) + "/" + name));
}

/// A PNG file whose rows are `rows`, each after the byte of its filter. `kind` is 0 for grey, 2 for
/// RGB.
inline std::string png_file(std::uint32_t width, std::uint32_t height, char depth, char kind,
                            const std::string& rows, char interlaced = 0) {
  auto chunk = [](const std::string& name, const std::string& data) {
    std::string body = name + data;
    auto sum =
        crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return big_endian(static_cast<std::uint32_t>(data.size())) + body +
           big_endian(static_cast<std::uint32_t>(sum));
  };
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  std::string header = big_endian(width) + big_endian(height) + depth + kind;
  header += {'\0', '\0', interlaced};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", packed) + chunk("IEND", "");
}

/// A PNG file of one grey value.
inline std::string plain_png(std::uint32_t width, std::uint32_t height, char value) {
  std::string rows;
  for (std::uint32_t y = 0; y < height; ++y) rows += '\0' + std::string(width, value);
  return png_file(width, height, 8, 0, rows);
}

}  // namespace rensa::testing

// Pictures of either format, and the channels that are asked for.
#include "rensa/data/images/read_image.h"

#include <fmt/format.h>

#include <cstring>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/data/images/jpeg.h"
#include "rensa/data/images/png.h"

namespace rensa::images {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kJpeg = "\xff\xd8\xff"sv, kPng = "\x89PNG\r\n\x1a\n"sv;

/// Of (3, height, width), as PIL rounds.
Array gray_of_rgb(const Array& rgb) {
  Array out = xp::empty({1, rgb.shape(1), rgb.shape(2)}, uint8, cpu());
  const std::int64_t n = out.size();
  const auto* in = static_cast<const std::uint8_t*>(rgb.data());
  auto* to = static_cast<std::uint8_t*>(out.data());
  for (std::int64_t i = 0; i < n; ++i) {
    unsigned sum = 19595U * in[i] + 38470U * in[n + i] + 7471U * in[2 * n + i] + 0x8000U;
    to[i] = static_cast<std::uint8_t>(sum >> 16);
  }
  return out;
}

/// Of (1, height, width).
Array rgb_of_gray(const Array& gray) {
  Array out = xp::empty({3, gray.shape(1), gray.shape(2)}, uint8, cpu());
  const auto size = static_cast<std::size_t>(gray.size());
  for (std::size_t c = 0; c < 3; ++c) {
    std::memcpy(static_cast<char*>(out.data()) + c * size, gray.data(), size);
  }
  return out;
}

}  // namespace

Array decode_image(std::string_view bytes, const std::string& name,
                   const ReadImageOptions& options) {
  if (options.min_size < 0) {
    throw ValueError(
        fmt::format("decode_image: a min_size of {}; give 0 or more", options.min_size));
  }
  bool jpeg = bytes.starts_with(kJpeg);
  if (!jpeg && !bytes.starts_with(kPng)) {
    throw SerializationError(
        bytes.empty() ? name + ": no picture: it is empty"
                      : name + ": no picture: it begins as neither a JPEG nor a PNG file");
  }
  Array image = jpeg ? decode_jpeg(bytes, name, options) : decode_png(bytes, name, options);
  if (options.mode == Mode::gray && image.shape(0) == 3) return gray_of_rgb(image);
  if (options.mode == Mode::rgb && image.shape(0) == 1) return rgb_of_gray(image);
  return image;
}

Array read_image(const std::string& path, const ReadImageOptions& options) {
  return decode_image(rensa::detail::read_whole_file(path), path, options);
}

}  // namespace rensa::images

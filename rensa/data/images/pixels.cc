// Limits on pictures, and errors of the libraries that decode them.
#include "rensa/data/images/pixels.h"

#include <fmt/format.h>

#include <cstdio>

#include "rensa/core/error.h"

namespace rensa::images {

void check_pixels(const Extents& extents, const std::string& name,
                  const ReadImageOptions& options) {
  auto [channels, height, width] = extents;
  if (channels < 1 || height < 1 || width < 1) {
    throw SerializationError(fmt::format("{}: a picture of {} x {} pixels and {} channels", name,
                                         width, height, channels));
  }
  if (height > options.max_pixels / width) {
    throw SerializationError(
        fmt::format("{}: a picture of {} x {} pixels, more than the {} that max_pixels allows",
                    name, width, height, options.max_pixels));
  }
}

void throw_damaged(const std::string& name, const char* format, const char* why) {
  throw SerializationError(fmt::format("{}: a damaged {} picture: {}", name, format, why));
}

void LibraryCalls::leave(const char* message) {
  std::snprintf(message_, sizeof message_, "%s", message);
  std::longjmp(jump_, 1);  // NOLINT(cert-err52-cpp)
}

}  // namespace rensa::images

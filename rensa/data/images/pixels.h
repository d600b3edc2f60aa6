// What decoders share: pixels in rows as arrays of planes, and limits on their number.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <string>
#include <string_view>

#include "rensa/data/images/read_image.h"

namespace rensa::images {

/// A picture's extents, as a file says.
struct Extents {
  std::int64_t channels, height, width;
};

/// Throws SerializationError where there is no pixel, or more of them than the options allow.
void check_pixels(const Extents& extents, const std::string& name, const ReadImageOptions& options);

/// Writes row `y` of `planes`, (channels, height, width) without gaps, from pixels whose channels
/// stand side by side.
template <class T>
void write_row(const T* pixels, const Extents& extents, std::int64_t y, T* planes) {
  const std::int64_t channels = extents.channels, width = extents.width;
  for (std::int64_t c = 0; c < channels; ++c) {
    T* row = planes + (c * extents.height + y) * width;
    for (std::int64_t x = 0; x < width; ++x) row[x] = pixels[x * channels + c];
  }
}

/// Throws SerializationError: "name: a damaged JPEG picture: why".
[[noreturn]] void throw_damaged(const std::string& name, const char* format, const char* why);

// A decoder's calls into its library. The library leaves a call that fails by longjmp, over frames
// of its own alone: what runs in a call has nothing to destroy.
class LibraryCalls {
 public:
  /// Whether f() came to its end; else message() says why not.
  template <class F> bool run(F f) {
    if (setjmp(jump_) != 0) return false;  // NOLINT(cert-err52-cpp)
    f();
    return true;
  }
  /// For the library's handler of errors: back into run().
  [[noreturn]] void leave(const char* message);
  const char* message() const { return message_; }

 private:
  std::jmp_buf jump_;
  char message_[256] = "";
};

}  // namespace rensa::images

// Pictures as arrays: JPEG and PNG, decoded on the CPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rensa/array/array.h"

namespace rensa::images {

/// Which channels a picture is to have.
enum class Mode {
  /// Those that it has: 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and alpha). A palette's
  /// colours, and CMYK, come as RGB.
  unchanged,
  /// 1. RGB becomes 0.299 R + 0.587 G + 0.114 B, but for JPEG, where grey is its own luminance.
  /// Alpha is dropped.
  gray,
  /// 3. Grey is repeated, alpha dropped.
  rgb,
};

struct ReadImageOptions {
  Mode mode = Mode::unchanged;  // the channels
  /// What height and width both need to be at the least. A JPEG that is larger is decoded at 1/2,
  /// 1/4 or 1/8 of its size, as far as that leaves so much: it saves most of the work where the
  /// picture is made smaller afterwards. 0, and any PNG: the whole size.
  std::int64_t min_size = 0;
  /// The most pixels that a picture may have, decoded; one that claims more is an error before any
  /// memory is taken.
  std::int64_t max_pixels = 178'956'970;
};

/// The picture that `bytes` hold, a whole JPEG or PNG file; `name` is what errors say. An array
/// (channels, height, width) in host memory, uint8 of 0 to 255; a grey PNG of 16 bits that stays
/// unchanged is uint16, any other picture of 16 bits loses the lower 8. Transparency that is no
/// alpha channel, gamma and the orientation that a camera noted are passed over, as PIL does.
///
/// Throws SerializationError for what is no such picture, ends early, is damaged or too large;
/// ValueError for a negative min_size; OutOfMemoryError; NotImplementedError where Rensa was built
/// without libjpeg and libpng. Damage that JPEG can resume behind is no error.
Array decode_image(std::string_view bytes, const std::string& name,
                   const ReadImageOptions& options = {});

/// The picture of a file. Throws as decode_image does.
Array read_image(const std::string& path, const ReadImageOptions& options = {});

}  // namespace rensa::images

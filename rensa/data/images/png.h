// PNG: read by libpng, written by ourselves.
#pragma once

#include <string>
#include <string_view>

#include "rensa/data/images/read_image.h"

namespace rensa::images {

/// As decode_image, but that the colours are the picture's own in the modes gray and rgb too:
/// 1 or 3 channels.
Array decode_png(std::string_view bytes, const std::string& name, const ReadImageOptions& options);

/// The file of a picture of uint8 (height, width, channels) on the CPU, without gaps: 1 channel
/// (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGB, alpha), one pixel or more. Needs no libpng.
std::string encode_png(const Array& pixels);

}  // namespace rensa::images

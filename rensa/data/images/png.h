// PNG, by libpng.
#pragma once

#include <string>
#include <string_view>

#include "rensa/data/images/read_image.h"

namespace rensa::images {

/// As decode_image, but that the colours are the picture's own in the modes gray and rgb too:
/// 1 or 3 channels.
Array decode_png(std::string_view bytes, const std::string& name, const ReadImageOptions& options);

}  // namespace rensa::images

// JPEG, by libjpeg.
#pragma once

#include <string>
#include <string_view>

#include "rensa/data/images/read_image.h"

namespace rensa::images {

/// As decode_image, but that a grey picture has 1 channel in mode rgb too.
Array decode_jpeg(std::string_view bytes, const std::string& name, const ReadImageOptions& options);

}  // namespace rensa::images

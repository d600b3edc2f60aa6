// Arrays as pictures in files.
#pragma once

#include <string>

#include "rensa/array/array.h"

namespace rensa::images {

/// Writes a picture (channels, height, width), as read_image gives it, as a PNG file: uint8, of 1
/// (grey), 2 (grey and alpha), 3 (RGB) or 4 channels. The file appears whole or not at all. Waits
/// for the device. Throws ShapeError, DtypeError, SerializationError.
void write_png(const std::string& path, const Array& picture);

}  // namespace rensa::images

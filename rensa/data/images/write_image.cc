// Writing pictures.
#include "rensa/data/images/write_image.h"

#include <fmt/format.h>

#include "rensa/array/manipulation.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/data/images/png.h"

namespace rensa::images {

void write_png(const std::string& path, const Array& picture) {
  if (picture.ndim() != 3 || picture.shape(0) < 1 || picture.shape(0) > 4 || picture.size() == 0) {
    throw ShapeError(fmt::format(
        "write_png: a picture of shape {}; give (channels, height, width) of 1 to 4 channels",
        picture.shape().str()));
  }
  if (picture.dtype() != uint8) {
    throw DtypeError(fmt::format("write_png: a picture of {}; give uint8, of 0 to 255",
                                 dtype_name(picture.dtype())));
  }
  Array pixels = xp::transpose(picture.to(cpu()), {1, 2, 0}).ascontiguous();
  detail::write_whole_file(path, encode_png(pixels));
}

}  // namespace rensa::images

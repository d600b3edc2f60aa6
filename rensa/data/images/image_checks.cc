// Checks of pictures.
#include "rensa/data/images/image_checks.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa::transforms {

void check_image(const char* operation, const Array& img) {
  if (img.ndim() != 3) {
    throw ShapeError(fmt::format("{}: a picture has the axes (channels, height, width), not {}",
                                 operation, img.view().describe()));
  }
  if (img.dtype() != Dtype::uint8 && img.dtype() != Dtype::float32) {
    throw DtypeError(fmt::format("{}: a picture is of uint8 or float32, not {}; astype() first",
                                 operation, img.view().describe()));
  }
  if (!img.device().is_cpu()) {
    throw DeviceError(fmt::format("{}: pictures are in host memory, not {}; to(cpu()) first",
                                  operation, img.view().describe()));
  }
}

Planes planes_of(const Array& img) {
  const std::int64_t item = itemsize(img.dtype());
  auto fits = [&](const Array& a) {
    return a.strides()[2] == item && a.strides()[0] % item == 0 && a.strides()[1] % item == 0;
  };
  Array array = fits(img) ? img : img.copy();
  return {array,
          array.shape(0),
          array.shape(1),
          array.shape(2),
          array.strides()[0] / item,
          array.strides()[1] / item};
}

}  // namespace rensa::transforms

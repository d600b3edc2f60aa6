// Where libjpeg was not there when Rensa was built.
#include "rensa/core/error.h"
#include "rensa/data/images/jpeg.h"

namespace rensa::images {

Array decode_jpeg(std::string_view, const std::string& name, const ReadImageOptions&) {
  throw NotImplementedError(name +
                            ": this build of Rensa reads no JPEG: build it where libjpeg-dev and "
                            "libpng-dev are installed");
}

}  // namespace rensa::images

// Pictures: JPEG and PNG. The first byte says in which channels and how small.
#include "fuzz/files.h"
#include "rensa/data/images/read_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  if (size < 1) return 0;
  images::ReadImageOptions options;
  options.mode = static_cast<images::Mode>(data[0] % 3);
  options.min_size = data[0] >> 4;
  options.max_pixels = 1 << 20;
  try {
    images::decode_image(fuzz::text(data + 1, size - 1), "fuzz", options);
  } catch (const SerializationError&) {}
  return 0;
}

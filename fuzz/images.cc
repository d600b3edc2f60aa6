// Pictures: JPEG and PNG. The first byte says in which channels and how small, and whether the sums
// of PNG's chunks are put right.
#include <zlib.h>

#include "fuzz/files.h"
#include "rensa/data/images/read_image.h"

namespace {

/// A chunk is its length, big-endian, its kind in 4 bytes, its content, and the sum of both.
std::string with_sums(std::string picture) {
  for (std::size_t chunk = 8; chunk + 12 <= picture.size();) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(picture.data() + chunk);
    std::size_t length = std::size_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    if (length > picture.size() - chunk - 12) break;
    auto sum = static_cast<std::uint32_t>(crc32_z(0, bytes + 4, length + 4));
    rensa::fuzz::put(picture, chunk + 8 + length, __builtin_bswap32(sum));
    chunk += 12 + length;
  }
  return picture;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  if (size < 1) return 0;
  images::ReadImageOptions options;
  options.mode = static_cast<images::Mode>(data[0] % 3);
  options.min_size = data[0] >> 4;
  options.max_pixels = 1 << 20;
  std::string picture(fuzz::text(data + 1, size - 1));
  if ((data[0] & 8) != 0 && picture.starts_with('\x89')) picture = with_sums(std::move(picture));
  try {
    images::decode_image(picture, "fuzz", options);
  } catch (const SerializationError&) {}
  return 0;
}

// Encoding PNG.
#include <zlib.h>

#include <algorithm>
#include <string>

#include "rensa/core/host_memory.h"
#include "rensa/data/images/png.h"

namespace rensa::images {

namespace {

void put_number(std::uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) *out += static_cast<char>(value >> shift);
}

void put_chunk(const char* type, std::string_view data, std::string* out) {
  put_number(static_cast<std::uint32_t>(data.size()), out);
  std::size_t start = out->size();
  *out += type;
  *out += data;
  put_number(static_cast<std::uint32_t>(crc32_z(
                 0, reinterpret_cast<const Bytef*>(out->data() + start), out->size() - start)),
             out);
}

/// The rows, each with the filter "Sub" in front: bytes less those of the pixel to the left.
std::string filtered(const unsigned char* pixels, std::int64_t height, std::int64_t row,
                     std::int64_t channels) {
  std::string rows;
  rows.reserve(static_cast<std::size_t>(height * (row + 1)));
  for (const unsigned char* line = pixels; height > 0; --height, line += row) {
    rows += '\1';
    for (std::int64_t i = 0; i < row; ++i) {
      rows += static_cast<char>(line[i] - (i < channels ? 0 : line[i - channels]));
    }
  }
  return rows;
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(out.data()), &size,
               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != Z_OK) {
    throw_out_of_host_memory("encode_png");
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string encode_png(const Array& pixels) {
  const std::int64_t height = pixels.shape(0), width = pixels.shape(1), channels = pixels.shape(2);
  std::string data = deflated(filtered(static_cast<const unsigned char*>(pixels.data()), height,
                                       width * channels, channels));
  std::string out = "\x89PNG\r\n\x1a\n", header;
  put_number(static_cast<std::uint32_t>(width), &header);
  put_number(static_cast<std::uint32_t>(height), &header);
  // 8 bits; the kind of colours; the only compression, filtering and no interlacing.
  header += {8, "\0\4\2\6"[channels - 1], 0, 0, 0};
  put_chunk("IHDR", header, &out);
  constexpr std::size_t most = std::size_t{1} << 30;  // a chunk has less than 2 GiB
  for (std::size_t at = 0; at < data.size(); at += most) {
    put_chunk("IDAT", std::string_view(data).substr(at, most), &out);
  }
  put_chunk("IEND", {}, &out);
  return out;
}

}  // namespace rensa::images

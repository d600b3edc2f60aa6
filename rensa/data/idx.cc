// Reading idx through zlib.
#include "rensa/data/idx.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/gzip_file.h"

namespace rensa {

namespace {

constexpr std::int64_t kMostExpansion = 1032;  // deflate's limit

std::uint32_t big_endian(const unsigned char* b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

}  // namespace

Array read_idx_gz(const std::string& path, int ndim) {
  if (ndim < 1 || ndim > kMaxNdim) {
    throw ValueError(
        fmt::format("read_idx_gz: an array has 1 to {} dimensions, not {}", kMaxNdim, ndim));
  }
  std::error_code unknown;
  bool regular = std::filesystem::is_regular_file(path, unknown);
  if (std::filesystem::exists(path, unknown) && !regular) {
    throw SerializationError(path + ": no regular file");
  }
  GzipFile file(path);
  unsigned char header[4 + 4 * kMaxNdim] = {};
  std::int64_t header_size = 4 + 4 * ndim;
  if (file.read(header, header_size) != header_size) {
    throw SerializationError(path + ": truncated: it ends within the idx header");
  }
  std::uint32_t magic = big_endian(header), expected = 0x0800u + static_cast<std::uint32_t>(ndim);
  if (magic != expected) {
    throw SerializationError(fmt::format(
        "{}: not the idx file wanted: its magic number is {}, not {}", path, magic, expected));
  }
  Shape shape;
  std::int64_t total = 1;
  auto on_disk = static_cast<std::int64_t>(std::filesystem::file_size(path, unknown));
  for (int i = 0; i < ndim; ++i) {
    shape.push_back(big_endian(header + 4 + 4 * i));
    if (__builtin_mul_overflow(total, shape[i], &total)) {
      total = std::numeric_limits<std::int64_t>::max();
      break;
    }
  }
  if (total / kMostExpansion > on_disk) {
    throw SerializationError(
        fmt::format("{}: it declares {} bytes of data, more than its {} compressed bytes can hold",
                    path, total, on_disk));
  }
  Array array = xp::empty(shape, uint8, cpu());
  std::int64_t got = file.read(array.data(), total);
  if (got != total) {
    throw SerializationError(fmt::format("{}: truncated: {} declares {} bytes, {} are there", path,
                                         shape.str(), total, got));
  }
  char extra;
  if (file.read(&extra, 1) != 0) {
    throw SerializationError(
        fmt::format("{}: it goes on after the {} bytes that it declares", path, total));
  }
  return array;
}

}  // namespace rensa

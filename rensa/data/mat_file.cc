// Reading MAT-files of level 5.
#include "rensa/data/mat_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/manipulation.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/host_memory.h"

namespace rensa {

namespace {

constexpr std::size_t kHeader = 128;
constexpr std::uint32_t kMatrix = 14, kCompressed = 15;
constexpr std::size_t kMostExpansion = 1032;  // deflate's limit

/// How numbers are stored: "data types", of which those of a matrix may be smaller than its own.
std::optional<Dtype> stored_dtype(std::uint32_t type) {
  switch (type) {
    case 1: return int8;
    case 2: return uint8;
    case 3: return int16;
    case 4: return uint16;
    case 5: return int32;
    case 6: return uint32;
    case 7: return float32;
    case 9: return float64;
    case 12: return int64;
    case 13: return uint64;
    default: return std::nullopt;
  }
}

/// What a matrix is: its "array type".
std::optional<Dtype> class_dtype(std::uint32_t matrix_class) {
  constexpr Dtype kDtypes[] = {float64, float32, int8,   uint8, int16,
                               uint16,  int32,   uint32, int64, uint64};
  if (matrix_class < 6 || matrix_class > 15) return std::nullopt;
  return kDtypes[matrix_class - 6];
}

template <class T> T number(std::string_view bytes, std::size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Element {
  std::uint32_t type;
  std::string_view data;
};

/// Data elements, one after the other.
class Elements {
 public:
  Elements(const std::string& path, std::string_view bytes) : path_(path), left_(bytes) {}

  bool at_end() const { return left_.empty(); }
  Element next() {
    auto type = number<std::uint32_t>(take(4));
    if (type >> 16) {  // a small one: its size beside the type, 4 bytes of data
      std::size_t size = type >> 16;
      std::string_view data = take(4);
      if (size > data.size()) fail("an element of 4 bytes says that it has more");
      return {type & 0xffff, data.substr(0, size)};
    }
    std::size_t size = number<std::uint32_t>(take(4));
    std::string_view data = take(size);
    if (type != kCompressed) take(std::min(left_.size(), (8 - size % 8) % 8));  // to whole 8 bytes
    return {type, data};
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw SerializationError(fmt::format("{}: {}", path_, what));
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) fail("truncated: it ends within an element");
    std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  const std::string& path_;
  std::string_view left_;
};

/// The one element that `packed` holds, with its tag.
std::string inflated(const Elements& file, std::string_view packed) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw SerializationError("read_mat: zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  auto into = [&](std::string& out, std::size_t from) {
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + from);
    stream.avail_out = static_cast<uInt>(out.size() - from);
    inflate(&stream, Z_NO_FLUSH);
    return stream.avail_out == 0;
  };
  std::string out(8, '\0');
  bool whole = into(out, 0);
  std::size_t size = whole ? number<std::uint32_t>(out, 4) : 0;
  whole = whole && size / kMostExpansion <= packed.size() &&
          size <= std::numeric_limits<std::uint32_t>::max() - 8;
  if (whole) {
    with_host_memory("read_mat", [&] { out.resize(8 + size); });
    whole = into(out, 8);
  }
  inflateEnd(&stream);
  if (!whole) file.fail("damaged: an element that zlib packed");
  return out;
}

Array array_of(const Elements& file, const Element& element, Dtype stored, Dtype dtype,
               const Shape& matlab_shape) {
  std::int64_t size = 1;
  for (std::int64_t extent : matlab_shape) {
    if (extent < 0 || __builtin_mul_overflow(size, extent, &size)) size = -1;
    if (size < 0) break;
  }
  auto bytes = static_cast<std::int64_t>(element.data.size());
  if (size < 0 || size > bytes || size * itemsize(stored) != bytes) {
    file.fail(fmt::format("an array of {} {} with {} bytes", matlab_shape.str(), dtype_name(stored),
                          bytes));
  }
  if (dtype_kind(stored) == 'f' && dtype_kind(dtype) != 'f') {  // integers that may not be
    file.fail(
        fmt::format("an array of {} that is stored as {}", dtype_name(dtype), dtype_name(stored)));
  }
  Shape c_shape = matlab_shape;  // MATLAB has columns next to one another
  std::ranges::reverse(c_shape);
  Array values = xp::empty(c_shape, stored, cpu());
  std::ranges::copy(element.data, static_cast<char*>(values.data()));
  return xp::transpose(stored == dtype ? values : values.astype(dtype));
}

/// Adds what `matrix` holds to `arrays` where it is an array of real numbers.
void read_matrix(const std::string& path, std::string_view matrix,
                 std::map<std::string, Array>* arrays) {
  constexpr std::uint32_t complex = 0x800;
  Elements parts(path, matrix);
  Element flags = parts.next();
  if (flags.data.size() < 8) parts.fail("a matrix without flags");
  auto word = number<std::uint32_t>(flags.data);
  std::optional<Dtype> dtype = class_dtype(word & 0xff);
  if (!dtype || (word & complex)) return;
  Element extents = parts.next();
  Shape shape;
  if (extents.data.size() / 4 > kMaxNdim) parts.fail("a matrix of too many dimensions");
  for (std::size_t at = 0; at + 4 <= extents.data.size(); at += 4) {
    shape.push_back(number<std::int32_t>(extents.data, at));
  }
  std::string name(parts.next().data);
  Element values = parts.next();
  std::optional<Dtype> stored = stored_dtype(values.type);
  if (!stored) parts.fail(fmt::format("{} holds data of type {}", name, values.type));
  arrays->insert_or_assign(std::move(name), array_of(parts, values, *stored, *dtype, shape));
}

}  // namespace

std::map<std::string, Array> read_mat(const std::string& path) {
  std::string file = detail::read_whole_file(path);
  if (file.size() < kHeader || file.compare(124, 4, std::string("\0\1IM", 4)) != 0) {
    throw SerializationError(path +
                             ": no MAT-file of level 5 with its lowest byte first (MATLAB's -v6 "
                             "and -v7; those of -v7.3 are HDF5 files)");
  }
  std::map<std::string, Array> arrays;
  Elements elements(path, std::string_view(file).substr(kHeader));
  while (!elements.at_end()) {
    Element element = elements.next();
    std::string unpacked;
    if (element.type == kCompressed) {
      unpacked = inflated(elements, element.data);
      element = Elements(path, unpacked).next();
    }
    if (element.type == kMatrix && !element.data.empty()) read_matrix(path, element.data, &arrays);
  }
  return arrays;
}

}  // namespace rensa

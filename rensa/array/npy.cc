// Reading and writing .npy.
#include "rensa/array/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "rensa/array/exchange.h"
#include "rensa/array/internal.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/utf8.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

/// A reader of the header's literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void read(NpyHeader* header) {
    expect('{');
    bool descr = false, order = false, shape = false;
    while (!accept('}')) {
      std::string_view key = quoted();
      expect(':');
      if ((descr && key == "descr") || (order && key == "fortran_order") ||
          (shape && key == "shape")) {
        fail(fmt::format("the header field '{}' comes twice", key));
      }
      if (key == "descr") {
        read_descr(header);
        descr = true;
      } else if (key == "fortran_order") {
        header->fortran_order = boolean();
        order = true;
      } else if (key == "shape") {
        read_shape(header);
        shape = true;
      } else {
        fail(fmt::format("unknown header field '{}'", key.substr(0, 32)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) fail("the header lacks descr, fortran_order or shape");
    std::int64_t bytes = 0;
    if (header->text_length >= 0 &&
        __builtin_mul_overflow(header->shape.total(), 4 * header->text_length, &bytes)) {
      fail("the shape's size overflows");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw SerializationError(fmt::format("{}: not a readable .npy: {}", name_, what));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' expected at byte {} of the header", c, at_));
  }
  std::string_view quoted() {
    skip_space();
    char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(fmt::format("a quoted name expected at byte {}", at_));
    std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("an unfinished string in the header");
    std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_space();
    for (std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    }
    fail("fortran_order is neither True nor False");
  }
  void read_descr(NpyHeader* header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') fail("structured dtypes are not supported");
    std::string_view descr = quoted();
    if (descr == "|O" || descr == "O") {
      header->is_object = true;
      return;
    }
    if (descr.size() > 2 && (descr.starts_with("<U") || descr.starts_with(">U"))) {
      read_text_descr(descr, header);
      return;
    }
    if (descr == "<V2" || descr == "|V2" || descr == "V2") {
      header->dtype = bfloat16;
      return;
    }
    header->byte_swapped = !descr.empty() && descr[0] == '>';
    std::string little =
        (header->byte_swapped ? "<" : "") + std::string(descr.substr(header->byte_swapped ? 1 : 0));
    try {
      header->dtype = parse_dtype(little);
    } catch (const DtypeError&) {
      fail(fmt::format("dtype '{}' is not supported", descr.substr(0, 32)));
    }
  }
  void read_text_descr(std::string_view descr, NpyHeader* header) {
    auto [end, error] =
        std::from_chars(descr.data() + 2, descr.data() + descr.size(), header->text_length);
    if (error != std::errc() || end != descr.data() + descr.size() || header->text_length < 0 ||
        header->text_length > std::numeric_limits<std::int64_t>::max() / 64) {
      fail(fmt::format("dtype '{}' is not supported", descr.substr(0, 32)));
    }
    header->byte_swapped = descr[0] == '>';
  }
  void read_shape(NpyHeader* header) {
    expect('(');
    std::int64_t bytes = 16;  // the widest element: the descr may come later
    while (!accept(')')) {
      if (header->shape.ndim() == kMaxNdim) {
        fail(fmt::format("more than {} dimensions", kMaxNdim));
      }
      std::int64_t extent = integer();
      header->shape.push_back(extent);
      if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)) {
        fail("the shape's size overflows");
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  std::int64_t integer() {
    skip_space();
    std::size_t start = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail("an extent overflows");
      }
    }
    if (at_ == start) fail(fmt::format("an extent expected at byte {} of the header", at_));
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
};

std::uint32_t little_endian(const char* bytes, int count) {
  std::uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// NumPy's array-protocol string.
std::string descr_of(Dtype dtype) {
  if (dtype == bfloat16) return "<V2";
  char kind = dtype_kind(dtype);
  std::int64_t size = itemsize(dtype);
  return fmt::format("{}{}{}", size == 1 ? '|' : '<', kind, size);
}

/// `descr` and `shape` as a header, padded so that the elements begin at a multiple of 64.
std::string header_of(const std::string& descr, const Shape& shape) {
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape.str());
  std::size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - 11, ' ');
  text += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(text.size() & 255);
  file += static_cast<char>(text.size() >> 8);
  return file + text;
}

/// Bytes of what stands in one piece: of complex numbers, a part.
std::int64_t word_size(Dtype dtype) { return itemsize(dtype) / (dtype_kind(dtype) == 'c' ? 2 : 1); }

/// How many bytes stand before the header's text, its length among them.
std::size_t prefix_size(std::span<const char> file, const std::string& name) {
  if (file.size() >= 2 && file[0] == 'P' && file[1] == 'K') {
    throw SerializationError(name + ": an .npz of several arrays: say load_npz");
  }
  if (file.size() < 10 || std::string_view(file.data(), 6) != kMagic) {
    throw SerializationError(name + ": not a .npy: it does not begin with NumPy's magic bytes");
  }
  int major = static_cast<unsigned char>(file[6]);
  if (major < 1 || major > 3) {
    throw SerializationError(fmt::format("{}: .npy version {} is not supported", name, major));
  }
  return major == 1 ? 10 : 12;
}

std::size_t header_length(const char* file, std::size_t prefix) {
  return little_endian(file + 8, prefix == 10 ? 2 : 4);
}

void check_numbers(const NpyHeader& header, const std::string& name) {
  if (!header.is_object && header.text_length < 0) return;
  throw SerializationError(name + (header.is_object ? ": an array of Python objects" : ": a text") +
                           "; only numbers can be read");
}

void check_size(const NpyHeader& header, std::int64_t there, const std::string& name) {
  if (there == header.nbytes()) return;
  throw SerializationError(fmt::format("{}: {} {} takes {} bytes, but {} are there", name,
                                       header.shape.str(), dtype_name(header.dtype),
                                       header.nbytes(), there));
}

/// Host memory for the elements in the file's order.
Array empty_as_stored(const NpyHeader& header) {
  Untraced real;  // a function that fuse() traces takes it as an input
  Shape stored = header.shape;
  if (header.fortran_order) std::reverse(stored.begin(), stored.end());
  return xp::empty(stored, header.dtype, cpu());
}

/// The array whose elements stand in `stored` as they stood in the file.
Array decoded(const NpyHeader& header, const Array& stored) {
  Untraced real;
  auto* bytes = static_cast<char*>(stored.data());
  if (header.byte_swapped) {
    std::int64_t word = word_size(header.dtype);
    for (std::int64_t i = 0; i < stored.nbytes(); i += word) {
      std::reverse(bytes + i, bytes + i + word);
    }
  }
  if (header.dtype == bool_) {  // any other byte would not be a C++ bool
    for (std::int64_t i = 0; i < stored.nbytes(); ++i) bytes[i] = bytes[i] != 0;
  }
  return header.fortran_order ? stored.transpose().copy() : stored;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const char> file, const std::string& name) {
  std::size_t prefix = prefix_size(file, name);
  if (file.size() < prefix) throw SerializationError(name + ": truncated .npy header");
  std::size_t length = header_length(file.data(), prefix);
  if (length > file.size() - prefix) {
    throw SerializationError(fmt::format("{}: a .npy header of {} bytes, but only {} are there",
                                         name, length, file.size() - prefix));
  }
  NpyHeader header;
  HeaderReader(std::string_view(file.data() + prefix, length), name).read(&header);
  header.data_offset = prefix + length;
  return header;
}

Array parse_npy(std::span<const char> file, const std::string& name) {
  NpyHeader header = parse_npy_header(file, name);
  check_numbers(header, name);
  auto there = static_cast<std::int64_t>(file.size() - header.data_offset);
  check_size(header, there, name);
  Array stored = empty_as_stored(header);
  if (there > 0) {
    std::memcpy(stored.data(), file.data() + header.data_offset, static_cast<std::size_t>(there));
  }
  return decoded(header, stored);
}

Array read_npy(FileReader& file) {
  std::string begin = file.read(10);
  std::size_t prefix = prefix_size(begin, file.name());
  begin += file.read(prefix - begin.size());
  if (begin.size() == prefix) begin += file.read(header_length(begin.data(), prefix));
  NpyHeader header = parse_npy_header(begin, file.name());
  check_numbers(header, file.name());
  std::int64_t size = header.nbytes();
  if (auto left = file.remaining()) {
    check_size(header, std::min(*left, size), file.name());
    Array stored = empty_as_stored(header);
    std::size_t got = file.read(stored.data(), static_cast<std::size_t>(size));
    check_size(header, static_cast<std::int64_t>(got), file.name());
    return decoded(header, stored);
  }
  std::string elements = file.read(static_cast<std::size_t>(size));
  check_size(header, static_cast<std::int64_t>(elements.size()), file.name());
  Array stored = empty_as_stored(header);
  if (size > 0) std::memcpy(stored.data(), elements.data(), elements.size());
  return decoded(header, stored);
}

Array map_npy(const std::string& path, FileMapping::Mode mode) {
  auto fail = [&](const std::string& what) {
    throw SerializationError(
        fmt::format("{}: it cannot be mapped: {}; load it without mmap_mode", path, what));
  };
  auto file = std::make_shared<FileMapping>(path, mode);
  std::span<const char> bytes(file->data(), file->size());
  NpyHeader header = parse_npy_header(bytes, path);
  check_numbers(header, path);
  check_size(header, static_cast<std::int64_t>(bytes.size() - header.data_offset), path);
  if (header.byte_swapped) fail("its elements are of the other byte order");
  std::int64_t word = word_size(header.dtype);
  if (header.data_offset % static_cast<std::size_t>(word) != 0) {
    fail(fmt::format("its elements do not lie at multiples of {} bytes", word));
  }
  if (header.dtype == bool_) {
    auto beyond = [](char c) { return c != 0 && c != 1; };
    if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(header.data_offset), bytes.end(),
                    beyond)) {
      fail("it has bools that are neither 0 nor 1");
    }
  }
  Shape stored = header.shape;
  if (header.fortran_order) std::reverse(stored.begin(), stored.end());
  Array array = detail::wrap(file->data() + header.data_offset, stored,
                             contiguous_strides(stored, itemsize(header.dtype)), header.dtype,
                             cpu(), file, mode == FileMapping::Mode::read);
  return header.fortran_order ? array.transpose() : array;
}

std::string npy_header(const Array& array) {
  return header_of(descr_of(array.dtype()), array.shape());
}

std::string_view bytes_of(const Array& array) {
  return {static_cast<const char*>(array.data()), static_cast<std::size_t>(array.nbytes())};
}

void write_npy(FileWriter& file, const Array& array) {
  file.write(npy_header(array));
  file.write(bytes_of(array));
}

std::string format_npy(const Array& array) {
  Array host = rensa::detail::on_host("save", array);
  return npy_header(host).append(bytes_of(host));
}

std::string format_npy_text(std::string_view utf8) {
  std::string characters;
  while (!utf8.empty()) {
    std::uint32_t c = take_character(&utf8);
    for (int i = 0; i < 4; ++i) characters += static_cast<char>(c >> (8 * i) & 255);
  }
  // NumPy has no text of no characters: that is one 0, as trailing zeros do not count.
  if (characters.empty()) characters.resize(4);
  return header_of(fmt::format("<U{}", characters.size() / 4), {}) + characters;
}

std::string parse_npy_text(std::span<const char> file, const std::string& name) {
  NpyHeader header = parse_npy_header(file, name);
  if (header.text_length < 0 || header.shape.ndim() != 0) {
    throw SerializationError(name + ": not a text");
  }
  auto there = static_cast<std::int64_t>(file.size() - header.data_offset);
  if (there != header.nbytes()) {
    throw SerializationError(
        fmt::format("{}: a text of {} characters takes {} bytes, but {} are there", name,
                    header.text_length, header.nbytes(), there));
  }
  std::string text;
  std::size_t end = 0;
  for (std::size_t at = header.data_offset; at < file.size(); at += 4) {
    std::uint32_t c = little_endian(file.data() + at, 4);
    if (header.byte_swapped) c = __builtin_bswap32(c);
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
      throw SerializationError(fmt::format("{}: {:#x} is no character", name, c));
    }
    add_character(c, &text);
    if (c != 0) end = text.size();
  }
  text.resize(end);
  return text;
}

std::string npy_of_none() {
  // pickle.dumps(numpy.asarray(None), protocol=3)
  static constexpr char pickle[] =
      "\x80\x03"
      "cnumpy.core.multiarray\n_reconstruct\nq\x00"
      "cnumpy\nndarray\nq\x01K\x00\x85q\x02"
      "C\x01"
      "bq\x03\x87q\x04Rq\x05(K\x01)cnumpy\ndtype\nq\x06X\x02\x00\x00\x00O8q\x07\x89\x88\x87"
      "q\x08Rq\x09(K\x03X\x01\x00\x00\x00|q\x0aNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tq\x0b"
      "b\x89"
      "]q\x0cNatq\x0d"
      "b.";
  return header_of("|O", {}) + std::string(pickle, sizeof(pickle) - 1);
}

}  // namespace rensa

// The zip format (PKWARE APPNOTE 6.3): local headers, the central directory, zip64.
#include "rensa/array/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"

namespace rensa {

namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the number stands in the zip64 field
constexpr int kStored = 0, kDeflated = 8;
constexpr std::uint64_t kMostExpansion = 1032;  // deflate's limit
constexpr unsigned kDosDate = 33;               // 1980-01-01: equal contents give equal files
constexpr std::size_t kLongestName = 0xffff;

/// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i < static_cast<std::size_t>(more)) {
      return false;
    }
    auto second = static_cast<unsigned char>(text[i]);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
      return false;
    }
    for (; more > 0; --more, ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return false;
    }
  }
  return true;
}

void put(std::string* out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) *out += static_cast<char>(value >> (8 * i) & 255);
}

std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Feeds zlib input and output in pieces that its 32-bit counters hold.
void refill(z_stream* stream, std::string_view input, std::size_t* in_used, char* output,
            std::size_t out_size, std::size_t out_used) {
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  if (stream->avail_in == 0) {
    std::size_t piece = std::min(most, input.size() - *in_used);
    stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data() + *in_used));
    stream->avail_in = static_cast<uInt>(piece);
    *in_used += piece;
  }
  stream->next_out = reinterpret_cast<Bytef*>(output + out_used);
  stream->avail_out = static_cast<uInt>(std::min(most, out_size - out_used));
}

std::string deflated(std::span<const std::string_view> pieces) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw SerializationError("zip: zlib cannot start");
  }
  std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string out, buffer(std::size_t{1} << 16, '\0');
  auto feed = [&](std::string_view piece, bool last) {
    std::size_t in_used = 0;
    do {
      refill(&stream, piece, &in_used, buffer.data(), buffer.size(), 0);
      int status = deflate(&stream, last && in_used == piece.size() ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer, 0, buffer.size() - stream.avail_out);
      if (status == Z_STREAM_END) return;
      if (status != Z_OK && status != Z_BUF_ERROR) {
        throw SerializationError("zip: zlib failed to compress");
      }
    } while (last || in_used < piece.size() || stream.avail_in > 0 || stream.avail_out == 0);
  };
  for (std::string_view piece : pieces) feed(piece, false);
  feed({}, true);
  return out;
}

/// Inflates `input` to exactly out->size() bytes; false when it does not come out so.
bool inflate_exactly(std::string_view input, std::string* out) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw SerializationError("zip: zlib cannot start");
  std::size_t in_used = 0, out_used = 0;
  int status = Z_OK;
  char spare = 0;  // room for a byte too many, so that zlib can say that the stream is over
  while (status == Z_OK) {
    bool full = out_used == out->size();
    refill(&stream, input, &in_used, full ? &spare : out->data(), full ? 1 : out->size(),
           full ? 0 : out_used);
    uInt room = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    uInt made = room - stream.avail_out;
    if (full && made) break;
    out_used += made;
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && out_used == out->size();
}

/// The beginning of a name, as an error can say it: bytes that are no text as \\xNN.
std::string shown(const std::string& name) {
  std::string text;
  bool readable = is_utf8(name.substr(0, 40));
  for (char c : name.substr(0, 40)) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = byte >= 0x80 ? readable : byte >= 0x20 && byte != 0x7f;
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return text;
}

}  // namespace

struct ZipWriter::Entry {
  std::string name;
  int method;
  std::uint32_t crc;
  std::uint64_t compressed_size, size, offset;
};

ZipWriter::ZipWriter(FileWriter& file) : file_(file) {}
ZipWriter::~ZipWriter() = default;

void ZipWriter::check_names(const char* operation, std::span<const std::string> names) {
  auto refuse = [&](const std::string& name, const char* why) {
    throw ValueError(fmt::format("{}: the name '{}' {}", operation, shown(name), why));
  };
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.size() > kLongestName)
      refuse(name, "has more than the 65535 bytes that an entry's may");
    if (name.find('\0') != name.npos) refuse(name, "holds a NUL");
    if (!is_utf8(name)) refuse(name, "is not UTF-8");
    if (!seen.insert(name).second) refuse(name, "comes twice");
  }
}

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::initializer_list<std::string_view> pieces,
                    bool compress) {
  std::string packed = compress
                           ? with_host_memory("savez_compressed", [&] { return deflated(pieces); })
                           : std::string();
  std::uint64_t size = 0;
  uLong crc = 0;
  for (std::string_view piece : pieces) {
    size += piece.size();
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
  }
  Entry entry{name,
              compress ? kDeflated : kStored,
              static_cast<std::uint32_t>(crc),
              compress ? packed.size() : size,
              size,
              offset_};
  std::string header;
  put(&header, kLocal, 4);
  put(&header, 45, 2);       // version needed: zip64
  put(&header, 1 << 11, 2);  // names are UTF-8
  put(&header, static_cast<std::uint64_t>(entry.method), 2);
  put(&header, 0, 2);
  put(&header, kDosDate, 2);
  put(&header, entry.crc, 4);
  put(&header, kIn64, 4);
  put(&header, kIn64, 4);
  put(&header, name.size(), 2);
  put(&header, 20, 2);
  header += name;
  put(&header, 1, 2);  // the zip64 field
  put(&header, 16, 2);
  put(&header, entry.size, 8);
  put(&header, entry.compressed_size, 8);
  write(header);
  if (compress) {
    write(packed);
  } else {
    for (std::string_view piece : pieces) write(piece);
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  std::uint64_t start = offset_;
  for (const Entry& entry : entries_) {
    std::string header;
    put(&header, kCentral, 4);
    put(&header, 45, 2);
    put(&header, 45, 2);
    put(&header, 1 << 11, 2);
    put(&header, static_cast<std::uint64_t>(entry.method), 2);
    put(&header, 0, 2);
    put(&header, kDosDate, 2);
    put(&header, entry.crc, 4);
    put(&header, kIn64, 4);
    put(&header, kIn64, 4);
    put(&header, entry.name.size(), 2);
    put(&header, 28, 2);
    header.append(10, '\0');  // no comment, disk 0, no attributes
    put(&header, kIn64, 4);
    header += entry.name;
    put(&header, 1, 2);
    put(&header, 24, 2);
    put(&header, entry.size, 8);
    put(&header, entry.compressed_size, 8);
    put(&header, entry.offset, 8);
    write(header);
  }
  std::uint64_t end64 = offset_, size = end64 - start;
  std::string end;
  put(&end, kEnd64, 4);
  put(&end, 44, 8);
  put(&end, 45, 2);
  put(&end, 45, 2);
  put(&end, 0, 8);
  put(&end, entries_.size(), 8);
  put(&end, entries_.size(), 8);
  put(&end, size, 8);
  put(&end, start, 8);
  put(&end, kLocator64, 4);
  put(&end, 0, 4);
  put(&end, end64, 8);
  put(&end, 1, 4);
  put(&end, kEnd, 4);
  put(&end, 0, 4);
  std::uint64_t count = std::min<std::uint64_t>(entries_.size(), 0xffff);
  put(&end, count, 2);
  put(&end, count, 2);
  put(&end, std::min<std::uint64_t>(size, kIn64), 4);
  put(&end, std::min<std::uint64_t>(start, kIn64), 4);
  put(&end, 0, 2);
  write(end);
}

ZipReader::ZipReader(FileReader& file) : ZipReader(file.name(), file.read_rest()) {}

ZipReader::ZipReader(std::string name, std::string bytes)
    : path_(std::move(name)), bytes_(std::move(bytes)) {
  read_directory();
}

void ZipReader::fail(const std::string& what) const {
  throw SerializationError(fmt::format("{}: not a readable npz file: {}", path_, what));
}

std::uint64_t ZipReader::number(std::uint64_t offset, int bytes) const {
  if (offset > bytes_.size() || bytes_.size() - offset < static_cast<std::size_t>(bytes)) {
    fail("it is truncated");
  }
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes_[offset + static_cast<std::size_t>(i)]);
  }
  return value;
}

void ZipReader::read_directory() {
  if (bytes_.size() < 22) fail("it is too short for a zip archive");
  std::uint64_t end = bytes_.size() - 22, first = end > 0xffff ? end - 0xffff : 0;
  while (number(end, 4) != kEnd) {
    if (end == first) fail("it has no zip directory at its end (truncated?)");
    --end;
  }
  std::uint64_t count = number(end + 10, 2), at = number(end + 16, 4);
  if (end >= 20 && number(end - 20, 4) == kLocator64) {
    std::uint64_t end64 = number(end - 12, 8);
    if (number(end64, 4) != kEnd64) fail("its zip64 directory is not where it should be");
    count = number(end64 + 32, 8);
    at = number(end64 + 48, 8);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    Entry entry = read_directory_entry(&at, &name);
    if (!entries_.emplace(std::move(name), entry).second) fail("an entry stands in it twice");
  }
}

ZipReader::Entry ZipReader::read_directory_entry(std::uint64_t* at, std::string* name) const {
  std::uint64_t h = *at;
  if (number(h, 4) != kCentral) fail("its directory is damaged");
  Entry entry{static_cast<int>(number(h + 10, 2)), static_cast<std::uint32_t>(number(h + 16, 4)),
              number(h + 20, 4), number(h + 24, 4), number(h + 42, 4)};
  std::uint64_t name_size = number(h + 28, 2), extra_size = number(h + 30, 2);
  std::uint64_t extra = h + 46 + name_size, extra_end = extra + extra_size;
  if (extra_end > bytes_.size()) fail("it is truncated");
  *name = bytes_.substr(h + 46, name_size);
  while (extra + 4 <= extra_end) {
    std::uint64_t id = number(extra, 2), field = extra + 4;
    extra = field + number(extra + 2, 2);
    if (id != 1) continue;
    for (std::uint64_t* value : {&entry.size, &entry.compressed_size, &entry.header_offset}) {
      if (*value != kIn64) continue;
      *value = number(field, 8);
      field += 8;
    }
  }
  *at = extra_end + number(h + 32, 2);
  return entry;
}

std::vector<std::string> ZipReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::string ZipReader::read(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) fail(fmt::format("it has no entry '{}'", name));
  const Entry& entry = found->second;
  std::uint64_t h = entry.header_offset;
  if (number(h, 4) != kLocal) fail(fmt::format("the entry '{}' is not where it should be", name));
  if (number(h + 6, 2) & 1) fail(fmt::format("the entry '{}' is encrypted", name));
  std::uint64_t data = h + 30 + number(h + 26, 2) + number(h + 28, 2);
  if (number(h + 26, 2) != name.size() || bytes_.compare(h + 30, name.size(), name) != 0) {
    fail(fmt::format("the entry '{}' has another name where it begins", name));
  }
  if (data > bytes_.size() || bytes_.size() - data < entry.compressed_size) {
    fail(fmt::format("the entry '{}' is truncated", name));
  }
  std::string_view body(bytes_.data() + data, entry.compressed_size);
  std::string content;
  auto take = [&](std::uint64_t size) {
    with_host_memory(path_.c_str(), [&] { content.resize(size); });
  };
  if (entry.method == kStored) {
    if (entry.size != entry.compressed_size) {
      fail(fmt::format("the entry '{}' declares two sizes", name));
    }
    take(entry.size);
    body.copy(content.data(), body.size());
  } else if (entry.method == kDeflated) {
    if (entry.size / kMostExpansion > entry.compressed_size) {
      fail(fmt::format("the entry '{}' declares {} bytes, more than {} compressed ones can hold",
                       name, entry.size, entry.compressed_size));
    }
    take(entry.size);
    if (!inflate_exactly(body, &content)) {
      fail(fmt::format("the entry '{}' is damaged: it is not {} bytes", name, entry.size));
    }
  } else {
    fail(fmt::format("the entry '{}' is packed by method {}, not deflate", name, entry.method));
  }
  if (checksum(content) != entry.crc)
    fail(fmt::format("the entry '{}' has a wrong checksum", name));
  return content;
}

}  // namespace rensa

// The tar format of POSIX.1-1988 (ustar), as far as regular files go.
#include "rensa/data/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/data/gzip_file.h"

namespace rensa {

namespace {

constexpr std::int64_t kBlock = 512;
using Header = std::array<char, kBlock>;

/// The text of a field, up to its end or a zero byte.
std::string_view field(const Header& header, std::size_t begin, std::size_t size) {
  std::string_view text(header.data() + begin, size);
  return text.substr(0, text.find('\0'));
}

/// An octal number, which spaces may surround; none where it is no such.
std::optional<std::int64_t> number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty() || text.size() > 12) return std::nullopt;
  std::int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + (c - '0');
  }
  return value;
}

/// The header's bytes added up, with spaces where the sum itself stands.
std::int64_t sum_of(const Header& header) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

/// Reads what an archive is made of.
class TarReader {
 public:
  explicit TarReader(const std::string& path) : path_(path), archive_(path) {}

  /// The next header; false at the end, behind which nothing but what was checked is left.
  bool next(Header& header) {
    if (archive_.read(header.data(), kBlock) != kBlock) fail("it has no end");
    if (std::ranges::count(header, '\0') != kBlock) return true;
    while (archive_.read(header.data(), kBlock) != 0) continue;  // gzip's sum comes at last
    return false;
  }
  /// The next `size` bytes, with what fills their last block.
  std::string content(std::int64_t size) {
    std::string bytes;
    for (std::int64_t left = size; left > 0;) {
      std::size_t begin = bytes.size();
      std::int64_t piece = std::min(left, kPiece);
      bytes.resize(begin + static_cast<std::size_t>(piece));
      if (archive_.read(bytes.data() + begin, piece) != piece) fail("it ends within a file");
      left -= piece;
    }
    skip((kBlock - size % kBlock) % kBlock);
    return bytes;
  }
  void pass(std::int64_t size) { skip((size + kBlock - 1) / kBlock * kBlock); }
  [[noreturn]] void fail(const char* what) const {
    throw SerializationError(fmt::format("{}: no whole tar archive: {}", path_, what));
  }

 private:
  static constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  void skip(std::int64_t size) {
    Header ignored;
    for (std::int64_t left = size; left > 0; left -= kBlock) {
      std::int64_t piece = std::min(left, kBlock);
      if (archive_.read(ignored.data(), piece) != piece) fail("it ends within a file");
    }
  }
  std::string path_;
  GzipFile archive_;
};

}  // namespace

std::map<std::string, std::string> read_tar_gz(
    const std::string& path, const std::function<bool(std::string_view)>& wanted) {
  TarReader archive(path);
  std::map<std::string, std::string> files;
  for (Header header; archive.next(header);) {
    std::optional<std::int64_t> sum = number(field(header, 148, 8)),
                                size = number(field(header, 124, 12));
    if (!sum || !size || *sum != sum_of(header)) archive.fail("a damaged header");
    std::string name(field(header, 0, 100));
    bool regular = header[156] == '0' || header[156] == '\0';
    if (regular && wanted(name)) {
      files[name] = with_host_memory("read_tar_gz", [&] { return archive.content(*size); });
    } else {
      archive.pass(*size);
    }
  }
  return files;
}

}  // namespace rensa

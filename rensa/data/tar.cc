// The tar format of POSIX.1-1988 (ustar), as far as regular files go.
#include "rensa/data/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "rensa/core/error.h"
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

}  // namespace

void each_file_of_tar_gz(const std::string& path, std::int64_t most,
                         const std::function<void(std::string_view, const std::string&)>& file) {
  GzipFile archive(path);
  auto fail = [&](const char* what) {
    throw SerializationError(fmt::format("{}: no whole tar archive: {}", path, what));
  };
  Header header;
  while (archive.read(header.data(), kBlock) == kBlock) {
    if (std::ranges::count(header, '\0') == kBlock) return;
    std::optional<std::int64_t> sum = number(field(header, 148, 8)),
                                size = number(field(header, 124, 12));
    if (!sum || !size || *sum != sum_of(header)) fail("a damaged header");
    bool regular = header[156] == '0' || header[156] == '\0';
    std::string name(field(header, 0, 100)), content;
    bool wanted = regular && *size <= most;
    if (wanted) content.resize(static_cast<std::size_t>(*size));
    if (wanted && archive.read(content.data(), *size) != *size) fail("it ends within a file");
    std::int64_t padded = (*size + kBlock - 1) / kBlock * kBlock;
    for (std::int64_t left = padded - (wanted ? *size : 0); left > 0;) {
      std::int64_t got = archive.read(header.data(), std::min(left, kBlock));
      if (got == 0) fail("it ends within a file");
      left -= got;
    }
    if (wanted) file(name, content);
  }
  fail("it has no end");
}

}  // namespace rensa

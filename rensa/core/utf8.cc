// Characters of UTF-8.
#include "rensa/core/utf8.h"

namespace rensa {

std::uint32_t take_character(std::string_view* utf8) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>((*utf8)[i]); };
  std::uint32_t first = byte(0);
  std::size_t size = first < 0x80       ? 1
                     : first >> 5 == 6  ? 2
                     : first >> 4 == 14 ? 3
                     : first >> 3 == 30 ? 4
                                        : 0;
  std::uint32_t c = size == 1 ? first : first & (0x7Fu >> size);
  bool valid = size != 0 && size <= utf8->size();
  for (std::size_t i = 1; valid && i < size; ++i) {
    valid = byte(i) >> 6 == 2;
    c = c << 6 | (byte(i) & 0x3Fu);
  }
  static constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  valid = valid && c >= least[size] && c <= 0x10FFFF && !(c >= 0xD800 && c < 0xE000);
  utf8->remove_prefix(valid ? size : 1);
  return valid ? c : 0xFFFD;
}

void add_character(std::uint32_t c, std::string* utf8) {
  auto add = [&](std::uint32_t byte) { *utf8 += static_cast<char>(byte); };
  auto add_rest = [&](int shift) { add(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return add(c);
  if (c < 0x800) return add(0xC0 | c >> 6), add_rest(0);
  if (c < 0x10000) return add(0xE0 | c >> 12), add_rest(6), add_rest(0);
  add(0xF0 | c >> 18), add_rest(12), add_rest(6), add_rest(0);
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) add_character(take_character(&text), &valid);
  return valid;
}

}  // namespace rensa

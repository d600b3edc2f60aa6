// Characters of UTF-8, one by one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rensa {

/// The character at the front of `utf8`, which must not be empty and loses it. What is no UTF-8 is
/// U+FFFD, a byte at a time.
std::uint32_t take_character(std::string_view* utf8);
void add_character(std::uint32_t character, std::string* utf8);
/// `text` with U+FFFD in place of what is no UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace rensa

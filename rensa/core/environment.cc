#include "rensa/core/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "rensa/core/error.h"

namespace rensa::environment {

std::optional<std::string> text(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

bool is_empty(const char* name) {
  const char* value = std::getenv(name);
  return value && !*value;
}

std::optional<std::uint64_t> number(const char* name, std::uint64_t least, std::uint64_t most) {
  std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  std::uint64_t result = 0;
  const char* end = value->data() + value->size();
  auto [stopped, error] = std::from_chars(value->data(), end, result);
  if (error != std::errc() || stopped != end || result < least || result > most) {
    refuse(name, *value, fmt::format("an integer from {} to {}", least, most));
  }
  return result;
}

std::optional<bool> flag(const char* name) {
  std::optional<int> place = word(name, {"0", "1"});
  if (!place) return std::nullopt;
  return *place == 1;
}

std::optional<int> word(const char* name, std::initializer_list<std::string_view> words) {
  std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  const auto* found = std::find(words.begin(), words.end(), *value);
  if (found == words.end()) refuse(name, *value, fmt::format("{}", fmt::join(words, " or ")));
  return static_cast<int>(found - words.begin());
}

void refuse(const char* name, std::string_view text, std::string_view takes) {
  throw ValueError(fmt::format("{}=\"{}\": this variable takes {}", name, text, takes));
}

}  // namespace rensa::environment

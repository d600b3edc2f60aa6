// The environment's say in memory pools.
#include "rensa/device/pool_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "rensa/core/error.h"

namespace rensa {

std::int64_t parse_memory_limit(std::string_view text, std::int64_t total) {
  bool percent = text.ends_with('%');
  std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const char* end = digits.data() + digits.size();
  auto [stopped, error] = std::from_chars(digits.data(), end, value);
  bool good = error == std::errc() && stopped == end && value >= 0 && value < 9e18;
  if (!good || (percent && value > 100)) {
    throw ValueError(fmt::format(
        "RENSA_GPU_MEMORY_LIMIT: \"{}\" is no limit; write bytes (8589934592) or a share (90%)",
        text));
  }
  return static_cast<std::int64_t>(percent ? value / 100 * static_cast<double>(total) : value);
}

namespace {
bool environment_is(const char* name, std::string_view value) {
  const char* text = std::getenv(name);
  return text && text == value;
}
}  // namespace

bool pool_off() {
  static const bool off = environment_is("RENSA_POOL", "off");
  return off;
}

bool pool_poison() {
  static const bool on = environment_is("RENSA_POOL_POISON", "1");
  return on;
}

}  // namespace rensa

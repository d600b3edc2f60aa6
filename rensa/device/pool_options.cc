// The environment's say in memory pools.
#include "rensa/device/pool_options.h"

#include <fmt/format.h>

#include <charconv>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/device/memory_pool.h"

namespace rensa {

std::int64_t memory_share(const char* who, double fraction, std::int64_t total) {
  if (total <= 0 && fraction > 0) {
    throw ValueError(fmt::format(
        "{}: how much memory there is in all is not known; give the limit in bytes", who));
  }
  return static_cast<std::int64_t>(fraction * static_cast<double>(total));
}

std::int64_t parse_memory_limit(const char* who, std::string_view text, std::int64_t total) {
  bool percent = text.ends_with('%');
  std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const char* end = digits.data() + digits.size();
  auto [stopped, error] = std::from_chars(digits.data(), end, value);
  bool good = error == std::errc() && stopped == end && value >= 0 && value < 9e18;
  if (!good || (percent && value > 100)) {
    throw ValueError(fmt::format(
        "{}: \"{}\" is no limit; write bytes (8589934592) or a share (90%)", who, text));
  }
  return percent ? memory_share(who, value / 100, total) : static_cast<std::int64_t>(value);
}

void limit_from_environment(MemoryPool& pool) {
  if (auto text = environment::text("RENSA_GPU_MEMORY_LIMIT")) {
    pool.set_limit(parse_memory_limit("RENSA_GPU_MEMORY_LIMIT", *text, pool.capacity()));
  }
}

bool pool_off() {
  static const bool off = environment::word("RENSA_POOL", {"on", "off"}) == 1;
  return off;
}

bool pool_poison() {
  static const bool on = environment::flag("RENSA_POOL_POISON").value_or(false);
  return on;
}

}  // namespace rensa

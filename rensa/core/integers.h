// Whole numbers cut into pieces.
#pragma once

#include <cstdint>

namespace rensa {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return ceil_div(n, multiple) * multiple;
}

}  // namespace rensa

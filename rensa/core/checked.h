// Arithmetic on extents, counts and offsets that throws where int64 would wrap around.
#pragma once

#include <cstdint>

namespace rensa {

namespace detail {
[[noreturn]] void throw_uncountable(const char* operation, std::int64_t a, char sign,
                                    std::int64_t b);
}

/// a + b, a - b and a * b. Throw ShapeError naming `operation` and both numbers where the result is
/// none of int64's.
inline std::int64_t checked_add(const char* operation, std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result)) detail::throw_uncountable(operation, a, '+', b);
  return result;
}
inline std::int64_t checked_subtract(const char* operation, std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) detail::throw_uncountable(operation, a, '-', b);
  return result;
}
inline std::int64_t checked_multiply(const char* operation, std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) detail::throw_uncountable(operation, a, '*', b);
  return result;
}

/// a * b, wrapped around: for strides that nobody follows, those of axes of one element or none.
inline std::int64_t wrapping_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  (void)__builtin_mul_overflow(a, b, &result);
  return result;
}

}  // namespace rensa

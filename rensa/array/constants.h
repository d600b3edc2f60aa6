// NumPy's constants.
#pragma once

#include <limits>
#include <numbers>

#include "rensa/array/index.h"
#include "rensa/core/dtype.h"

namespace rensa::xp {

inline constexpr double pi = std::numbers::pi;  // the circumference of a circle by its diameter
inline constexpr double e = std::numbers::e;    // the base of natural logarithms
inline constexpr double euler_gamma = std::numbers::egamma;  // Euler's constant, 0.577...
inline constexpr double inf = std::numeric_limits<double>::infinity();  // Infinity
/// Not a number: it equals nothing, itself neither.
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The dtypes and what stands in indices, as NumPy has them in its namespace too.
using rensa::bfloat16;
using rensa::bool_;
using rensa::complex128;
using rensa::complex64;
using rensa::ellipsis;
using rensa::float16;
using rensa::float32;
using rensa::float64;
using rensa::int16;
using rensa::int32;
using rensa::int64;
using rensa::int8;
using rensa::newaxis;
using rensa::uint16;
using rensa::uint32;
using rensa::uint64;
using rensa::uint8;

}  // namespace rensa::xp

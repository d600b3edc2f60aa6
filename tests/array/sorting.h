// What the tests of sorts, scans and their like share.
#pragma once

#include "tests/array/replay.h"

namespace rensa::testing {

/// The axes of a call, one or two.
inline Axes axes_of(const Call& c) {
  if (!c.has("axes")) return c.has("axis") ? Axes(c.axis()) : Axes();
  std::vector<std::int64_t> axes = c.integers("axes");
  return {static_cast<int>(axes[0]), static_cast<int>(axes[1])};
}

/// Sizes that cross the borders of chunks, tiles and blocks.
inline std::vector<std::int64_t> sizes() {
  if (testing::quick()) return {31, 5000};
  return {1, 31, 255, 256, 257, 4095, 5000, 131071, 131073, 1000003};
}

}  // namespace rensa::testing

// Slices and axes: Python's rules for what stands between brackets.
#include "rensa/array/index.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/core/shape.h"

namespace rensa {

Slice::Range Slice::over(std::int64_t extent) const {
  if (step_ == 0) throw ValueError("getitem: a slice's step cannot be 0");
  // The places where a slice can start and stop: behind the last element, or before the first one.
  std::int64_t lowest = step_ > 0 ? 0 : -1, highest = step_ > 0 ? extent : extent - 1;
  auto place = [&](std::int64_t i) { return std::clamp(i < 0 ? i + extent : i, lowest, highest); };
  std::int64_t start = start_ ? place(*start_) : step_ > 0 ? lowest : highest;
  std::int64_t stop = stop_ ? place(*stop_) : step_ > 0 ? highest : lowest;
  std::int64_t count = 0;
  if (step_ == 1) count = std::max<std::int64_t>(stop - start, 0);
  else if (step_ > 0 && start < stop) count = (stop - start - 1) / step_ + 1;
  if (step_ < 0 && stop < start) count = (stop - start + 1) / step_ + 1;
  return {start, count, step_};
}

Axes Axes::from_list(const Shape& axes) {
  Axes result;
  result.all_ = false;
  for (std::int64_t axis : axes) {
    // What is out of int's range is out of every array's.
    result.values_[result.count_++] = static_cast<int>(std::clamp<std::int64_t>(
        axis, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
  }
  return result;
}

Shape Axes::values() const {
  Shape result;
  for (int i = 0; i < count_; ++i) result.push_back(values_[i]);
  return result;
}

unsigned Axes::mask(const char* operation, int ndim) const {
  if (all_) return (1u << ndim) - 1;
  unsigned mask = 0;
  for (int i = 0; i < count_; ++i) {
    unsigned bit = 1u << normalize_axis(operation, values_[i], ndim);
    if (mask & bit) {
      throw ValueError(fmt::format("{}: axis {} is given twice", operation, values_[i]));
    }
    mask |= bit;
  }
  return mask;
}

}  // namespace rensa

// The one formula of xp::interp, for the host compiler and for nvcc.
#pragma once

#include "rensa/core/half.h"

namespace rensa {

/// Where `x` lies among the `n` rising `points`: the last one that is not greater, -1 in front of
/// the first, n behind the last. A NaN is at 0.
RENSA_FN long long find_interval(const double* points, long long n, double x) {
  if (x < points[0]) return -1;
  if (x > points[n - 1]) return n;
  long long low = 0, high = n;  // points[low] <= x, and x < points[high] or high == n
  while (high - low > 1) {
    long long middle = low + (high - low) / 2;
    if (points[middle] <= x) low = middle;
    else high = middle;
  }
  return low;
}

/// The value at x of the polygon through (points[i], values[i * width]) with `at` found by
/// find_interval in [0, n); NumPy's formula, which keeps off NaN where two values are infinite.
RENSA_FN double interpolate(const double* points, const double* values, long long n,
                            long long width, long long at, double x) {
  double left = values[at * width];
  if (at == n - 1 || points[at] == x) return left;
  double right = values[(at + 1) * width];
  double slope = (right - left) / (points[at + 1] - points[at]);
  double result = slope * (x - points[at]) + left;
  if (result == result) return result;
  result = slope * (x - points[at + 1]) + right;
  return result != result && left == right ? left : result;
}

}  // namespace rensa

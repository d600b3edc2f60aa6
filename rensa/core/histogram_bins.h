// Which bin of a histogram a value falls into, as NumPy has it. Read by the host compiler and by
// nvcc.
#pragma once

#include "rensa/core/half.h"

namespace rensa {

struct HistogramBins {
  const double* edges;  // rising, one more than bins
  long long bins;
  bool uniform;

  /// -1 where the value lies outside of all bins, or is NaN.
  RENSA_FN long long operator()(double x) const {
    if (!(x >= edges[0] && x <= edges[bins])) return -1;
    long long low = 0, high = bins;  // edges[low] <= x, and x < edges[high] or high is the last
    if (uniform) {
      // The guess is at most a rounding away.
      double share = (x - edges[0]) / (edges[bins] - edges[0]);
      low = static_cast<long long>(share * static_cast<double>(bins));
      if (!(low >= 0 && low < bins)) low = bins - 1;
      while (low > 0 && x < edges[low]) --low;
      while (low < bins - 1 && x >= edges[low + 1]) ++low;
      return low;
    }
    while (high - low > 1) {
      long long middle = low + (high - low) / 2;
      if (edges[middle] <= x) low = middle;
      else high = middle;
    }
    return low;
  }
};

}  // namespace rensa

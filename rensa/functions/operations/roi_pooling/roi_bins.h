// Regions of interest cut into bins, and what a bin makes of an image. Read by the host's compiler
// and by nvcc, so that both add in one order.
#pragma once

#include "rensa/core/functors.h"
#include "rensa/portable/conversion.h"

namespace rensa {

/// Elements [begin, end).
struct RoiRange {
  long long begin, end;
  RENSA_FN bool empty() const { return begin >= end; }
  RENSA_FN double count() const { return empty() ? 0 : static_cast<double>(end - begin); }
};

/// A place along an axis where an image is looked at, between two elements of it or at one: a
/// weight of 0 is of none.
struct RoiTap {
  long long at[2];
  double weight[2];
  bool inside;

  RENSA_FN double weight_of(long long element) const {
    return element == at[0] ? weight[0] : element == at[1] ? weight[1] : 0;
  }
};

/// How images are looked at.
struct RoiLook {
  double scale = 1;        // from rois' coordinates to elements
  bool aligned = false;    // bins have samples between the elements; else all of their elements
  bool inclusive = false;  // a roi has the element where it ends
};

/// A roi along one axis, whose bins are numbered 0 to out - 1. A bin's taps are numbered by the
/// image's elements, or, where they are samples, from 0 on.
struct RoiAxis {
  long long limit;  // elements of the image
  bool aligned;
  double start, step;  // of the first bin; of each bin
  long long grid;      // taps of a bin where they are samples, else the limit

  RENSA_FN RoiAxis(const RoiLook& look, double low, double high, long long elements, int out,
                   int samples)
      : limit(elements), aligned(look.aligned) {
    start = bounded(low * look.scale);
    double end = bounded(high * look.scale);
    if (!aligned) start = m::rint(start), end = m::rint(end);
    double extent = end - start + (look.inclusive ? 1 : 0);
    step = (extent > 1 ? extent : 1.0) / out;
    if (!aligned) grid = limit;
    else grid = samples > 0 ? samples : static_cast<long long>(m::ceil(step));
  }

  RENSA_FN RoiRange taps(int bin) const {
    if (aligned) return samples_between(bin, -1, static_cast<double>(limit));
    return {clipped(m::floor(bin * step) + start, limit),
            clipped(m::ceil((bin + 1) * step) + start, limit)};
  }
  /// Those of a bin that may look at an element.
  RENSA_FN RoiRange taps_near(int bin, long long element) const {
    if (aligned) {
      return samples_between(bin, static_cast<double>(element - 1),
                             static_cast<double>(element + 1));
    }
    RoiRange all = taps(bin);
    if (element < all.begin || element >= all.end) return {0, 0};
    return {element, element + 1};
  }
  /// What a bin's taps are the mean of: samples outside of the image count.
  RENSA_FN double count(int bin) const {
    return aligned ? static_cast<double>(grid) : taps(bin).count();
  }
  RENSA_FN RoiTap tap(int bin, long long i) const {
    RoiTap tap = {{i, -1}, {1, 0}, true};
    if (!aligned) return tap;
    double p = place(bin, i);
    tap.inside = p >= -1 && p <= static_cast<double>(limit);
    if (!tap.inside) {
      tap.weight[0] = 0;
      return tap;
    }
    auto below = static_cast<long long>(m::floor(p));
    if (below == limit) --below;
    if (below <= -1) p = 0;
    else if (below + 1 >= limit) p = static_cast<double>(limit - 1);
    tap.at[0] = below, tap.at[1] = below + 1;
    tap.weight[0] = below >= 0 ? static_cast<double>(below + 1) - p : 0;
    tap.weight[1] = below + 1 < limit ? p - static_cast<double>(below) : 0;
    return tap;
  }

 private:
  /// Far from any image, and safe to compute with; NaN too.
  RENSA_FN static double bounded(double v) { return v > -1e9 ? (v < 1e9 ? v : 1e9) : -1e9; }
  RENSA_FN static long long clipped(double v, long long most) {
    return v > 0 ? (v < static_cast<double>(most) ? static_cast<long long>(v) : most) : 0;
  }
  RENSA_FN double place(int bin, long long i) const {
    return start + bin * step + (static_cast<double>(i) + .5) * step / static_cast<double>(grid);
  }
  /// All samples of a bin from low to high, and a few beside.
  RENSA_FN RoiRange samples_between(int bin, double low, double high) const {
    double first = start + bin * step, each = step / static_cast<double>(grid);
    return {clipped(m::floor((low - first) / each - .5) - 1, grid),
            clipped(m::floor((high - first) / each - .5) + 3, grid)};
  }
};

/// What an image has at a tap of each axis; load(row, column) gives an element.
template <class V, class Load>
RENSA_FN V value_at_taps(const RoiTap& y, const RoiTap& x, const Load& load) {
  V sum = V(0);
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) {
      double weight = y.weight[a] * x.weight[b];
      if (weight > 0) sum += V(weight) * load(y.at[a], x.at[b]);
    }
  }
  return sum;
}

/// The mean of a bin, 0 of an empty one.
template <class V, class Load>
RENSA_FN V mean_of_bin(const RoiAxis& y, const RoiAxis& x, int row, int column, const Load& load) {
  RoiRange rows = y.taps(row), columns = x.taps(column);
  V sum = V(0);
  for (long long i = rows.begin; i < rows.end; ++i) {
    RoiTap at_y = y.tap(row, i);
    for (long long j = columns.begin; j < columns.end; ++j) {
      sum += value_at_taps<V>(at_y, x.tap(column, j), load);
    }
  }
  double count = y.count(row) * x.count(column);
  return count > 0 ? sum / V(count) : V(0);
}

/// The greatest tap of a bin, the first of equal ones, and NaN where there is one; its number, rows
/// first, or -1, and `otherwise`, where there is none.
template <class V, class Load>
RENSA_FN V greatest_of_bin(const RoiAxis& y, const RoiAxis& x, int row, int column, V otherwise,
                           const Load& load, long long* number) {
  RoiRange rows = y.taps(row), columns = x.taps(column);
  V greatest = otherwise;
  *number = -1;
  for (long long i = rows.begin; i < rows.end; ++i) {
    RoiTap at_y = y.tap(row, i);
    if (!at_y.inside) continue;
    for (long long j = columns.begin; j < columns.end; ++j) {
      RoiTap at_x = x.tap(column, j);
      if (!at_x.inside) continue;
      V value = value_at_taps<V>(at_y, at_x, load);
      bool is_nan = value != value && greatest == greatest;
      if (*number >= 0 && !(value > greatest) && !is_nan) continue;
      greatest = value;
      *number = i * x.grid + j;
    }
  }
  return greatest;
}

}  // namespace rensa

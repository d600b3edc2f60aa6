// Windows over an array: where they lie, and what they make of elements. Read by the host's
// compiler and by nvcc, so that both add in one order.
#pragma once

#include "rensa/portable/conversion.h"

namespace rensa {

/// The windows along one axis: number o has `size` places from o * stride - pad on, or, where
/// stride is 0, `out` windows share the axis, from o * in / out to (o + 1) * in / out rounded up,
/// none of which has more than `size` places.
struct WindowAxis {
  int in = 1, out = 1;  // elements, windows
  int size = 1, stride = 1, pad = 0;

  /// Where a window begins, perhaps in front of the elements, and the elements that it has.
  RENSA_FN int first(int o) const {
    return stride ? o * stride - pad : static_cast<int>(static_cast<long long>(o) * in / out);
  }
  RENSA_FN int begin(int o) const { return first(o) > 0 ? first(o) : 0; }
  RENSA_FN int end(int o) const {
    if (!stride) return static_cast<int>(((o + 1ll) * in + out - 1) / out);
    return first(o) + size < in ? first(o) + size : in;
  }
  /// The windows that have element i.
  RENSA_FN int from(int i) const {
    if (!stride) return static_cast<int>(static_cast<long long>(i) * out / in);
    int last = i + pad - size + stride;
    return last > 0 ? last / stride : 0;
  }
  RENSA_FN int to(int i) const {
    if (!stride) return static_cast<int>(((i + 1ll) * out + in - 1) / in);
    return (i + pad) / stride + 1 < out ? (i + pad) / stride + 1 : out;
  }
};

// Axis is WindowAxis, or one with the same members that divides in another way.

/// Calls f(offset, position) for the elements of window o: their place among all, and in the
/// window.
template <int A = 0, int N, class Axis, class F>
RENSA_FN void each_of_window(const Axis (&axis)[N], const int (&o)[N], long long offset,
                             int position, const F& f) {
  const Axis& a = axis[A];
  int first = a.first(o[A]), end = a.end(o[A]);
  for (int i = a.begin(o[A]); i < end; ++i) {
    long long inner = offset * a.in + i;
    int place = position * a.size + (i - first);
    if constexpr (A + 1 == N) f(inner, place);
    else each_of_window<A + 1>(axis, o, inner, place, f);
  }
}
/// Calls f(offset, position, covered) for the windows that have element i: the window's place among
/// all, the element's in it, and how many elements it has.
template <int A = 0, int N, class Axis, class F>
RENSA_FN void each_window_of(const Axis (&axis)[N], const int (&i)[N], long long offset,
                             int position, int covered, const F& f) {
  const Axis& a = axis[A];
  int to = a.to(i[A]);
  for (int o = a.from(i[A]); o < to; ++o) {
    long long inner = offset * a.out + o;
    int place = position * a.size + (i[A] - a.first(o)), count = covered * (a.end(o) - a.begin(o));
    if constexpr (A + 1 == N) f(inner, place, count);
    else each_window_of<A + 1>(axis, i, inner, place, count, f);
  }
}
/// The elements that window o has.
template <int N, class Axis> RENSA_FN int covered_by(const Axis (&axis)[N], const int (&o)[N]) {
  int covered = 1;
  for (int a = 0; a < N; ++a) covered *= axis[a].end(o[a]) - axis[a].begin(o[a]);
  return covered;
}
/// The places of any window.
template <int N, class Axis> RENSA_FN int places_of(const Axis (&axis)[N]) {
  int places = 1;
  for (int a = 0; a < N; ++a) places *= axis[a].size;
  return places;
}

/// What is done with the elements of a window, or with the windows of an element.
enum class PoolingMode : unsigned char {
  max,  // the greatest, the first of equals, NaN where there is one; and its position
  at,   // the element at the position
  sum
};
/// By what a sum is divided.
enum class PoolingWeight : unsigned char { one, window, covered };

// Of W neighbours at once. load(offset, k) is neighbour k there, position(offset, k) the position.

/// The greatest of window o, and their positions.
template <int W, int N, class Axis, class V, class Load>
RENSA_FN void greatest_of_window(const Axis (&axis)[N], const int (&o)[N], const Load& load,
                                 V (&greatest)[W], int (&positions)[W]) {
  for (int k = 0; k < W; ++k) greatest[k] = m::lowest<V>(), positions[k] = 0;
  each_of_window(axis, o, 0, 0, [&](long long offset, int position) {
    for (int k = 0; k < W; ++k) {
      V value = load(offset, k);
      bool better = !(value <= greatest[k]) & (greatest[k] == greatest[k]);
      greatest[k] = better ? value : greatest[k];
      positions[k] = better ? position : positions[k];
    }
  });
}
/// Those at `positions`, 0 where that is beside the elements.
template <int W, int N, class Axis, class V, class Load>
RENSA_FN void at_of_window(const Axis (&axis)[N], const int (&o)[N], const Load& load,
                           const int (&positions)[W], V (&found)[W]) {
  for (int k = 0; k < W; ++k) found[k] = V(0);
  each_of_window(axis, o, 0, 0, [&](long long offset, int position) {
    for (int k = 0; k < W; ++k) {
      if (positions[k] == position) found[k] = load(offset, k);
    }
  });
}
template <int W, int N, class Axis, class V, class Load>
RENSA_FN void sum_of_window(const Axis (&axis)[N], PoolingWeight weight, const int (&o)[N],
                            const Load& load, V (&sum)[W]) {
  for (int k = 0; k < W; ++k) sum[k] = V(0);
  each_of_window(axis, o, 0, 0, [&](long long offset, int) {
    for (int k = 0; k < W; ++k) sum[k] += load(offset, k);
  });
  if (weight == PoolingWeight::one) return;
  V count = V(weight == PoolingWeight::window ? places_of(axis) : covered_by(axis, o));
  for (int k = 0; k < W; ++k) sum[k] = sum[k] / count;
}
/// The sums of what the windows of element i give it: of those, with `at`, that have their position
/// at it.
template <int W, int N, class Axis, class V, class Load, class Position>
RENSA_FN void sum_of_windows(const Axis (&axis)[N], PoolingWeight weight, bool at,
                             const int (&i)[N], const Load& load, const Position& position_at,
                             V (&sum)[W]) {
  for (int k = 0; k < W; ++k) sum[k] = V(0);
  V window = V(places_of(axis));
  each_window_of(axis, i, 0, 0, 1, [&](long long offset, int position, int covered) {
    V count = weight == PoolingWeight::window ? window : V(covered);
    for (int k = 0; k < W; ++k) {
      if (at) {
        if (position_at(offset, k) == position) sum[k] += load(offset, k);
      } else {
        V value = load(offset, k);
        sum[k] += weight == PoolingWeight::one ? value : value / count;
      }
    }
  });
}

}  // namespace rensa

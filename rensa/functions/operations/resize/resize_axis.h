// Images resized: which elements a pixel lies between, and which pixels an element is given to.
// Read by the host's compiler and by nvcc, so that both add in one order.
#pragma once

#include "rensa/portable/conversion.h"

namespace rensa {

/// The two elements that a pixel lies between along an axis, and their shares of it.
template <class V> struct ResizeTap {
  int at[2];
  V weight[2];

  RENSA_FN V weight_of(int element) const {
    return (element == at[0] ? weight[0] : V(0)) + (element == at[1] ? weight[1] : V(0));
  }
};

/// Pixels [begin, end).
struct ResizeRange {
  int begin, end;
};

/// One axis of `in` elements, of which `out` pixels are made: pixel o lies at (o + shift) * scale -
/// shift, or at 0 where that is less.
struct ResizeAxis {
  int in = 1, out = 1;
  double scale = 1, shift = 0;
  double inverse = 1;  // 1 / scale, 0 where the scale is 0
  bool linear = true;  // else a pixel is the element below it

  template <class V> RENSA_FN ResizeTap<V> tap(int o) const {
    double p = place(o);
    int below = element_below(p);
    if (!linear) return {{below, below}, {V(1), V(0)}};
    V share = V(p - static_cast<double>(below));
    return {{below, below + 1 < in ? below + 1 : below}, {V(1) - share, share}};
  }
  /// What pixel o has of element i.
  template <class V> RENSA_FN V weight(int o, int i) const { return tap<V>(o).weight_of(i); }
  /// The pixels that have a share of element i.
  RENSA_FN ResizeRange pixels_of(int i) const {
    int least = linear ? i - 1 : i;  // of what is below such a pixel
    ResizeRange r = {0, out};
    if (scale > 0) {  // as the scale's inverse says, and one more for its rounding
      r.begin = clipped((least + shift) * inverse - shift - 1);
      if (i + 1 < in) r.end = clipped((i + 1 + shift) * inverse - shift + 2);
    }
    while (r.begin < r.end && element_below(place(r.begin)) < least) ++r.begin;
    while (r.begin < r.end && element_below(place(r.end - 1)) > i) --r.end;
    return r;
  }

 private:
  RENSA_FN double place(int o) const {
    double p = (o + shift) * scale - shift;
    return p > 0 ? p : 0;
  }
  RENSA_FN int element_below(double p) const {
    auto below = static_cast<int>(p);
    return below < in ? below : in - 1;
  }
  RENSA_FN int clipped(double o) const { return o > 0 ? (o < out ? static_cast<int>(o) : out) : 0; }
};

/// A pixel between four elements, {above left, above right, below left, below right}.
template <class V>
RENSA_FN V resized_between(const ResizeTap<V>& y, const ResizeTap<V>& x, const V (&v)[4]) {
  V left = v[0] * y.weight[0] + v[2] * y.weight[1];
  V right = v[1] * y.weight[0] + v[3] * y.weight[1];
  return left * x.weight[0] + right * x.weight[1];
}

/// The sums of what pixels give to element (i, j) of K images. load(row, column, there, values)
/// gives the images' pixels, or zeros where `there` is false. Axis is ResizeAxis, or one with the
/// same members.
template <int K, class V, class Axis, class Load>
RENSA_FN void resize_gradient(const Axis& y, const Axis& x, int i, int j, const Load& load,
                              V (&sum)[K]) {
  constexpr int kColumns = 4;  // at a time, whose weights are kept
  for (int k = 0; k < K; ++k) sum[k] = V(0);
  ResizeRange rows = y.pixels_of(i), columns = x.pixels_of(j);
  for (int first = columns.begin; first < columns.end; first += kColumns) {
    V of_column[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      of_column[c] = first + c < columns.end ? x.template weight<V>(first + c, j) : V(0);
    }
    for (int row = rows.begin; row < rows.end; ++row) {
      V of_row = y.template weight<V>(row, i);
      if (of_row == V(0)) continue;
      V values[kColumns][K];
      for (int c = 0; c < kColumns; ++c) load(row, first + c, of_column[c] != V(0), values[c]);
      for (int c = 0; c < kColumns; ++c) {
        V weight = of_row * of_column[c];
        for (int k = 0; k < K; ++k) sum[k] += weight * values[c][k];
      }
    }
  }
}

}  // namespace rensa

// Images looked at in places between their elements, zeros around them. Read by the host's compiler
// and by nvcc, so that both add in one order.
#pragma once

#include "rensa/core/functors.h"
#include "rensa/portable/conversion.h"

namespace rensa {

/// A place along an axis of `extent` elements, given by a coordinate, -1 and 1 being the outermost
/// elements: between the elements below - 1 and below, of which either may be beside the image.
template <class V> struct SampleAxis {
  int below;     // 0 to extent
  V share;       // of the element `below`; the one in front has the rest
  V slope;       // what the place moves by where the coordinate grows by 1; 0 past the zeros
  bool nowhere;  // no element has a share

  RENSA_FN SampleAxis(V coordinate, int extent) {
    V scale = V(static_cast<double>(extent - 1) / 2), most = V(extent + 1);
    V p = (coordinate + V(1)) * scale + V(1);
    slope = p >= V(0) && p <= most ? scale : V(0);
    nowhere = p <= V(0) || p >= most;
    p = p < V(0) ? V(0) : p > most ? most : p;
    below = p >= V(1) ? (p < V(extent) ? static_cast<int>(p) : extent) : 0;
    share = p - V(below);
  }
  RENSA_FN V weight(int which) const { return which ? share : V(1) - share; }
  /// The share of an element that is below, or in front.
  RENSA_FN V weight_of(int element) const { return weight(element == below ? 1 : 0); }
};

/// What lies between four elements {above left, above right, below left, below right}.
template <class V>
RENSA_FN V sampled_between(const SampleAxis<V>& y, const SampleAxis<V>& x, const V (&v)[4]) {
  V above = v[0] * x.weight(0) + v[1] * x.weight(1);
  V below = v[2] * x.weight(0) + v[3] * x.weight(1);
  return above * y.weight(0) + below * y.weight(1);
}
/// Adds what g, the gradient there, is to the place along x and y.
template <class V>
RENSA_FN void add_place_gradient(const SampleAxis<V>& y, const SampleAxis<V>& x, const V (&v)[4],
                                 V g, V (&sum)[2]) {
  sum[0] += g * ((v[1] - v[0]) * y.weight(0) + (v[3] - v[2]) * y.weight(1));
  sum[1] += g * ((v[2] - v[0]) * x.weight(0) + (v[3] - v[1]) * x.weight(1));
}
/// The sums of a place's gradient over the channels are made in so many parts, which are added in
/// order: channel c goes to part c % kSampleParts.
inline constexpr int kSampleParts = 8;

/// Where places stand in the order in which elements ask for them: by image, row and column of the
/// element that is below and to the right; those that are nowhere come last.
struct SampleOrder {
  long long images;
  int rows, columns;

  RENSA_FN long long count() const { return images * (rows + 1) * (columns + 1); }
  RENSA_FN long long key(long long image, int row, int column) const {
    return (image * (rows + 1) + row) * (columns + 1) + column;
  }
};

/// The sums of what places give to element (i, j) of K channels of an image. starts[key] is the
/// first place of that key, or a later one, among the sorted; order numbers them in all images, of
/// which this has places [begin, ...). grid(place, axis) is a coordinate; add(place, weight) adds.
template <class V, class Grid, class Add>
RENSA_FN void each_place_of(const SampleOrder& o, long long image, int i, int j,
                            const long long* order, const long long* starts, long long begin,
                            const Grid& grid, const Add& add) {
  for (int row = i; row <= i + 1; ++row) {
    long long first = o.key(image, row, j), end = starts[first + 2];
    for (long long k = starts[first]; k < end; ++k) {
      long long place = order[k] - begin;
      SampleAxis<V> y(grid(place, 1), o.rows), x(grid(place, 0), o.columns);
      add(place, y.weight_of(i) * x.weight_of(j));
    }
  }
}

}  // namespace rensa

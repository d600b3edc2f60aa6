// Differences, integrals, products of vectors, covariance.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::xp {

/// a[i + 1] - a[i] along an axis, n times; bool differs by not_equal. `prepend` and `append` are
/// joined to `a` first, a 0-d one is broadcast. Throws ValueError for n < 0.
Array diff(const Array& a, int n = 1, int axis = -1, const Array& prepend = {},
           const Array& append = {});
/// The differences of the flattened array, between `to_begin` and `to_end`, which are cast to its
/// dtype ("same_kind").
Array ediff1d(const Array& a, const Array& to_end = {}, const Array& to_begin = {});

/// What lies between two samples: a distance, or the samples' coordinates in one dimension.
class GradientSpacing {
 public:
  GradientSpacing(double distance) : distance_(distance) {}
  GradientSpacing(Array coordinates) : coordinates_(std::move(coordinates)) {}
  double distance() const { return distance_; }
  const Array& coordinates() const { return coordinates_; }

 private:
  double distance_ = 1;
  Array coordinates_;
};
/// Central differences inside and one-sided ones at the ends (of edge_order 1 or 2) along each of
/// `axes`, all when left out; one array an axis. `spacing` has none, one for all, or one an axis.
/// Integers give float64. Throws ShapeError where an axis is too short.
std::vector<Array> gradient(const Array& f, const std::vector<GradientSpacing>& spacing = {},
                            const Shape& axes = {}, int edge_order = 1);

/// The integral along an axis by the trapezoidal rule, over samples `dx` apart or at `x` (1-d, or
/// of y's shape).
Array trapezoid(const Array& y, double dx = 1, int axis = -1);
Array trapezoid(const Array& y, const Array& x, int axis = -1);

/// The cross products of vectors of 2 or 3 components along an axis of each operand; of two
/// 2-vectors the third component alone.
Array cross(const Array& a, const Array& b, int axisa = -1, int axisb = -1, int axisc = -1);
namespace linalg {
/// Of vectors of exactly 3 components along `axis` of both.
Array cross(const Array& a, const Array& b, int axis = -1);
}  // namespace linalg

struct CovOptions {
  bool rowvar = true;  // variables are rows
  bool bias = false;   // divide by the number of samples instead of one less
  std::optional<int> ddof = {};
  Array fweights = {}, aweights = {};  // 1-d; taken as they are, negative ones are not looked for
  std::optional<Dtype> dtype = {};     // float64 or complex128 when left out
};
/// The covariance matrix of the variables in m (and y).
Array cov(const Array& m, const Array& y = {}, const CovOptions& options = {});
/// Pearson's correlation coefficients.
Array corrcoef(const Array& x, const Array& y = {}, bool rowvar = true,
               std::optional<Dtype> dtype = {});

}  // namespace rensa::xp

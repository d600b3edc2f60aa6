// Differences, integrals, products of vectors, covariance.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::xp {

/// a[i + 1] - a[i] along an axis, n times; bool differs by not_equal. `prepend` and `append` are
/// joined to `a` first, a 0-d one is broadcast. Throws ValueError for n < 0.
[[nodiscard]] Array diff(const Array& a, int n = 1, int axis = -1, const Array& prepend = {},
                         const Array& append = {});
struct DiffOptions {
  rensa::detail::NamedOptions named = {};
  int n = 1, axis = -1;
  ArrayOption prepend = {}, append = {};
};
[[nodiscard]] Array diff(const Array& a, const DiffOptions& options);
/// The differences of the flattened array, between `to_begin` and `to_end`, which are cast to its
/// dtype ("same_kind").
[[nodiscard]] Array ediff1d(const Array& a, const Array& to_end = {}, const Array& to_begin = {});

/// What lies between two samples: a distance, or the samples' coordinates in one dimension.
class GradientSpacing {
 public:
  GradientSpacing(double distance) : distance_(distance) {}
  GradientSpacing(Array coordinates) : coordinates_(std::move(coordinates)) {}
  double distance() const { return distance_; }  // where there are no coordinates
  /// 1-d; undefined where a distance was given.
  const Array& coordinates() const { return coordinates_; }

 private:
  double distance_ = 1;
  Array coordinates_;
};
struct GradientOptions {
  rensa::detail::NamedOptions named = {};
  AxisList axis = {};  // all when left out
  int edge_order = 1;  // of the differences at the ends: 1 or 2
};
/// Central differences inside and one-sided ones at the ends along each axis; one array per axis.
/// `spacing` has none, one for all, or one per axis. Integers give float64. Throws ShapeError where
/// an axis is too short.
[[nodiscard]] std::vector<Array> gradient(const Array& f,
                                          const std::vector<GradientSpacing>& spacing = {},
                                          const GradientOptions& options = {});

/// The integral along an axis by the trapezoidal rule, over samples `dx` apart or at `x` (1-d, or
/// of y's shape).
[[nodiscard]] Array trapezoid(const Array& y, double dx = 1, int axis = -1);
[[nodiscard]] Array trapezoid(const Array& y, const Array& x, int axis = -1);
struct TrapezoidOptions {
  rensa::detail::NamedOptions named = {};
  ArrayOption x = {};
  double dx = 1;
  int axis = -1;
};
[[nodiscard]] Array trapezoid(const Array& y, const TrapezoidOptions& options);

/// The cross products of vectors of 2 or 3 components along an axis of each operand; of two
/// 2-vectors the third component alone.
[[nodiscard]] Array cross(const Array& a, const Array& b, int axisa = -1, int axisb = -1,
                          int axisc = -1);
struct CrossOptions {
  rensa::detail::NamedOptions named = {};
  int axisa = -1, axisb = -1, axisc = -1;  // axisc: where the results' components lie
  std::optional<int> axis = {};            // all three
};
[[nodiscard]] Array cross(const Array& a, const Array& b, const CrossOptions& options);
namespace linalg {
/// Of vectors of exactly 3 components along `axis` of both.
[[nodiscard]] Array cross(const Array& a, const Array& b, int axis = -1);
}  // namespace linalg

struct CovOptions {
  bool rowvar = true;  // variables are rows
  bool bias = false;   // divide by the number of samples instead of one less
  /// Taken off the number of samples; 1, or 0 with `bias`, when left out.
  std::optional<int> ddof = {};
  ArrayOption fweights = {},        // how often each sample counts; and how much:
      aweights = {};                // 1-d; taken as they are, negative ones are not looked for
  std::optional<Dtype> dtype = {};  // float64 or complex128 when left out
};
/// The covariance matrix of the variables in m (and y).
[[nodiscard]] Array cov(const Array& m, const Array& y = {}, const CovOptions& options = {});
/// Pearson's correlation coefficients.
struct CorrcoefOptions {
  rensa::detail::NamedOptions named = {};
  bool rowvar = true;               // variables are rows
  std::optional<Dtype> dtype = {};  // float64 or complex128 when left out
};
[[nodiscard]] Array corrcoef(const Array& x, const Array& y = {},
                             const CorrcoefOptions& options = {});

}  // namespace rensa::xp

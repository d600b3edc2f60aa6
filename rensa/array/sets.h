// Sets of an array's elements, NumPy's names. What gives an array whose size depends on values
// waits for the device.
#pragma once

#include <optional>

#include "rensa/array/routines.h"

namespace rensa::xp {

/// What unique and its relatives give: the values in ascending order, and where asked for the place
/// (int64) of the first of each in the raveled array, the place of each element's value in `values`
/// (of the array's shape), and how often each occurs.
struct UniqueResult {
  Array values, indices, inverse, counts;  // undefined where not asked for
};
struct UniqueOptions {
  /// What there is besides the values.
  bool return_index = false, return_inverse = false, return_counts = false;
  bool equal_nan = true;  // all NaNs are one value
  /// The subarrays along this axis are the elements: in lexicographic order, by as many sorts as
  /// they have elements; a NaN in one equals none. `inverse` is 1-d.
  std::optional<int> axis = {};
  bool sorted = true;  // false leaves the order open; it is the ascending one then too
};
/// Any dtype. Waits for the device. Throws IndexError for the axis.
[[nodiscard]] UniqueResult unique(const Array& a, const UniqueOptions& options);
[[nodiscard]] Array unique(const Array& a);
/// The array API's, to which each NaN is a value of its own. They wait for the device.
[[nodiscard]] UniqueResult unique_all(const Array& a);
[[nodiscard]] UniqueResult unique_counts(const Array& a);
[[nodiscard]] UniqueResult unique_inverse(const Array& a);
[[nodiscard]] Array unique_values(const Array& a);

/// Whether each element of `a` is one of `test` (any shape): bool, of a's shape. NaN is in no set.
[[nodiscard]] Array isin(const Array& a, const Array& test, bool assume_unique = false,
                         bool invert = false);
[[nodiscard]] Array isin(const Array& a, Scalar test, bool assume_unique = false,
                         bool invert = false);
[[nodiscard]] Array isin(Scalar a, const Array& test, bool assume_unique = false,
                         bool invert = false);
struct IsinOptions {
  rensa::detail::NamedOptions named = {};
  bool assume_unique = false, invert = false;  // promises; of what is not in `test`
};
[[nodiscard]] Array isin(const Array& a, const Array& test, const IsinOptions& options);
[[nodiscard]] inline Array isin(const Array& a, Scalar test, const IsinOptions& options) {
  return isin(a, test, options.assume_unique, options.invert);
}
[[nodiscard]] inline Array isin(Scalar a, const Array& test, const IsinOptions& options) {
  return isin(a, test, options.assume_unique, options.invert);
}
/// Isin of the flattened `a`: 1-d.
[[nodiscard]] Array in1d(const Array& a, const Array& test, bool assume_unique = false,
                         bool invert = false);
/// The values that both have, ascending. Waits for the device.
[[nodiscard]] Array intersect1d(const Array& a, const Array& b, bool assume_unique = false);
/// Those with where the first of each stands in the raveled `a` and `b`.
struct IntersectResult {
  Array values, a_indices, b_indices;  // int64 places
};
[[nodiscard]] IntersectResult intersect1d_indices(const Array& a, const Array& b,
                                                  bool assume_unique = false);
/// The values of `a` that are not in `b`: ascending, or with `assume_unique` in a's order. Waits
/// for the device.
[[nodiscard]] Array setdiff1d(const Array& a, const Array& b, bool assume_unique = false);
/// The values of either, or of exactly one of the two. They wait for the device.
[[nodiscard]] Array union1d(const Array& a, const Array& b);
/// The values of exactly one of the two, ascending. Waits.
[[nodiscard]] Array setxor1d(const Array& a, const Array& b, bool assume_unique = false);

}  // namespace rensa::xp

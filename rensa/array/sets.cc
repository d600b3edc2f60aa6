// Sets: sorts, and comparisons of neighbours.
#include "rensa/array/sets.h"

#include <fmt/format.h>

#include "rensa/array/along_axis.h"
#include "rensa/array/indexing.h"
#include "rensa/array/internal.h"
#include "rensa/array/sorting.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/mark_present/mark_present.h"

namespace rensa {

using detail::check_defined;
using xp::UniqueOptions;
using xp::UniqueResult;

namespace {

Array places_where(const char* operation, const Array& mask) {
  return detail::true_coordinates(operation, mask, true)[0];
}

// Where a sorted 1-d array begins another value: true, then whether each differs from the one
// before it.
Array begins(const char* operation, const Array& sorted, bool equal_nan) {
  std::int64_t n = sorted.size();
  Array mask = detail::new_array({n}, bool_, sorted.device());
  detail::fill_elements(operation, mask[Slice(0, 1)], true);
  if (n == 1) return mask;
  Array before = sorted[Slice(0, n - 1)], after = sorted[Slice(1, none)];
  Array differs = mask[Slice(1, none)];
  detail::elementwise(operation, ufunc::not_equal, {before, after}, &differs);
  char kind = dtype_kind(sorted.dtype());
  if (equal_nan && (kind == 'f' || kind == 'c')) {
    differs &= xp::equal(before, before) | xp::equal(after, after);
  }
  return mask;
}

Array raveled(const char* operation, const Array& a) {
  check_defined(operation, a);
  return a.ravel().ascontiguous();
}

// What is asked for of the groups of equal elements that begin, in `order`, where `mask` is true.
// `order` is undefined where nothing needs it.
void describe_groups(const char* operation, const Array& mask, const Array& first,
                     const Array& order, const UniqueOptions& options, UniqueResult& result) {
  std::int64_t n = mask.size();
  if (options.return_index) result.indices = xp::take(order, first);
  if (options.return_inverse) {
    result.inverse = detail::new_array({n}, int64, mask.device());
    if (n > 0) result.inverse[order] = detail::running(operation, false, mask, 0, int64) - 1;
  }
  if (options.return_counts) {
    Array end = xp::full({n > 0 ? 1 : 0}, n, int64, mask.device());
    result.counts = xp::concatenate({first[Slice(1, none)], end}) - first;
  }
}

// From where it pays to look at an integer array's range before it is sorted.
constexpr std::int64_t kRangeFrom = 4096;

// The values of an integer array in order, where its range is much smaller than its size: marked in
// a table. Undefined where it is not.
Array unique_by_table(const char* operation, const Array& flat) {
  char kind = dtype_kind(flat.dtype());
  if ((kind != 'i' && kind != 'u') || flat.size() < kRangeFrom) return {};
  auto bits = [&](const Array& x) {  // modulo 2^64
    return flat.dtype() == uint64 ? x.item<std::uint64_t>()
                                  : static_cast<std::uint64_t>(x.item<std::int64_t>());
  };
  std::uint64_t low = bits(flat.min()), last = bits(flat.max()) - low;
  if (last >= static_cast<std::uint64_t>(flat.size() / 8)) return {};
  Array flags = detail::new_array({static_cast<std::int64_t>(last) + 1}, bool_, flat.device());
  operations::MarkPresent op(operation);
  op.low = static_cast<long long>(low);
  op.in = flat.operand();
  op.flags = flags.operand();
  launch(op);
  return (places_where(operation, flags) + static_cast<std::int64_t>(low)).astype(flat.dtype());
}

UniqueResult unique_of(const char* operation, const Array& a, const UniqueOptions& options) {
  Array flat = raveled(operation, a);
  std::int64_t n = flat.size();
  if (!options.return_index && !options.return_inverse && !options.return_counts) {
    if (Array values = unique_by_table(operation, flat); values.defined())
      return {values, {}, {}, {}};
  }
  Array row = flat.reshape({1, n}), order, sorted;
  if (options.return_index || options.return_inverse) {
    order = detail::order_of_rows(operation, row);
    sorted = detail::take_places(row, order).reshape({n});
    order = order.reshape({n});
  } else {
    sorted = detail::sorted_rows(operation, row).reshape({n});
  }
  Array mask = n > 0 ? begins(operation, sorted, options.equal_nan)
                     : detail::new_array({0}, bool_, a.device());
  UniqueResult result;
  result.values = detail::true_elements(operation, sorted, mask);
  Array first =
      options.return_index || options.return_counts ? places_where(operation, mask) : Array();
  describe_groups(operation, mask, first, order, options, result);
  if (options.return_inverse) result.inverse = result.inverse.reshape(a.shape());
  return result;
}

// The unique subarrays along an axis.
UniqueResult unique_along(const Array& a, int axis, const UniqueOptions& options) {
  const char* operation = "unique";
  Array columns = detail::rows_along(a, axis);  // a column is an element
  std::int64_t n = columns.shape()[1], keys = columns.shape()[0];
  Array order = xp::arange(n, int64, a.device());
  std::vector<Array> by_last;
  for (std::int64_t key = keys; key-- > 0;) by_last.push_back(columns[key]);
  if (keys > 0) order = xp::lexsort(by_last);
  Array sorted = xp::take(columns.transpose(), order, 0);
  Array mask = detail::new_array({n}, bool_, a.device());
  detail::fill_elements(operation, mask[Slice(0, 1)], true);
  if (n > 1) {
    mask[Slice(1, none)] =
        xp::any(xp::not_equal(sorted[Slice(1, none)], sorted[Slice(0, n - 1)]), 1);
  }
  Array first = places_where(operation, mask);
  UniqueResult result;
  result.values = detail::from_rows(xp::take(sorted, first, 0).transpose(), a.shape(), axis);
  describe_groups(operation, mask, first, order, options, result);
  return result;
}

Array unique_or_raveled(const char* operation, const Array& a, bool assume_unique) {
  return assume_unique ? raveled(operation, a) : unique_of(operation, a, {}).values;
}

// Both, one behind the other, sorted: where a value stands twice in it, both have it.
Array merged(const char* operation, const Array& a, const Array& b) {
  Array both = xp::concatenate({a, b});
  return detail::sorted_rows(operation, both.reshape({1, both.size()})).reshape({both.size()});
}

}  // namespace

namespace xp {

UniqueResult unique(const Array& a, const UniqueOptions& options) {
  check_defined("unique", a);
  if (!options.axis) return unique_of("unique", a, options);
  int axis = normalize_axis("unique", *options.axis, a.ndim());
  return a.ndim() == 1 ? unique_of("unique", a, options) : unique_along(a, axis, options);
}
Array unique(const Array& a) { return unique_of("unique", a, {}).values; }
UniqueResult unique_all(const Array& a) {
  return unique_of(
      "unique_all", a,
      {.return_index = true, .return_inverse = true, .return_counts = true, .equal_nan = false});
}
UniqueResult unique_counts(const Array& a) {
  return unique_of("unique_counts", a, {.return_counts = true, .equal_nan = false});
}
UniqueResult unique_inverse(const Array& a) {
  return unique_of("unique_inverse", a, {.return_inverse = true, .equal_nan = false});
}
Array unique_values(const Array& a) {
  return unique_of("unique_values", a, {.equal_nan = false}).values;
}

Array isin(const Array& a, const Array& test, bool, bool invert) {
  check_defined("isin", a);
  Array set = raveled("isin", test);
  check_same_device("isin", a, set);
  std::int64_t n = set.size();
  if (n == 0 || a.size() == 0) return full(a.shape(), invert, bool_, a.device());
  Dtype common = promote_types(a.dtype(), set.dtype());
  Array values = a.astype(common, false);
  set = rensa::detail::sorted_rows("isin", set.astype(common, false).reshape({1, n})).reshape({n});
  return rensa::detail::found_in("isin", set, values, invert);
}

Array isin(const Array& a, const Array& test, const IsinOptions& o) {
  return isin(a, test, o.assume_unique, o.invert);
}

Array isin(const Array& a, Scalar test, bool, bool invert) {
  check_defined("isin", a);
  return invert ? not_equal(a, test) : equal(a, test);
}

Array isin(Scalar a, const Array& test, bool, bool invert) {
  check_defined("isin", test);
  Array found = any(equal(test, a));
  return invert ? logical_not(found) : found;
}

Array in1d(const Array& a, const Array& test, bool assume_unique, bool invert) {
  check_defined("in1d", a);
  return isin(a.ravel(), test, assume_unique, invert);
}

Array intersect1d(const Array& a, const Array& b, bool assume_unique) {
  check_same_device("intersect1d", a, b);
  Array both = merged("intersect1d", unique_or_raveled("intersect1d", a, assume_unique),
                      unique_or_raveled("intersect1d", b, assume_unique));
  std::int64_t n = both.size();
  if (n < 2) return both[Slice(0, 0)].copy();
  Array before = both[Slice(0, n - 1)];
  return rensa::detail::true_elements("intersect1d", before, equal(before, both[Slice(1, none)]));
}

IntersectResult intersect1d_indices(const Array& a, const Array& b, bool assume_unique) {
  check_same_device("intersect1d", a, b);
  auto of = [&](const Array& x) -> UniqueResult {
    if (!assume_unique) return unique_of("intersect1d", x, {.return_index = true});
    Array flat = raveled("intersect1d", x);
    return {flat, arange(flat.size(), int64, x.device()), {}, {}};
  };
  UniqueResult left = of(a), right = of(b);
  Array both = concatenate({left.values, right.values});
  Array row = both.reshape({1, both.size()});
  std::int64_t n = both.size(), n_left = left.values.size();
  if (n < 2) return {both[Slice(0, 0)].copy(), arange(0, a.device()), arange(0, a.device())};
  // The sort is stable: of two equal values the first comes from a.
  Array order = rensa::detail::order_of_rows("intersect1d", row);
  Array sorted = rensa::detail::take_places(row, order).reshape({n});
  order = order.reshape({n});
  Array before = sorted[Slice(0, n - 1)];
  Array place = places_where("intersect1d", equal(before, sorted[Slice(1, none)]));
  return {take(sorted, place), take(left.indices, take(order, place)),
          take(right.indices, take(order, place + 1) - n_left)};
}

Array setdiff1d(const Array& a, const Array& b, bool assume_unique) {
  check_same_device("setdiff1d", a, b);
  Array values = unique_or_raveled("setdiff1d", a, assume_unique);
  return rensa::detail::true_elements("setdiff1d", values, isin(values, b, assume_unique, true));
}

Array union1d(const Array& a, const Array& b) {
  check_same_device("union1d", a, b);
  return unique_of("union1d", concatenate({raveled("union1d", a), raveled("union1d", b)}), {})
      .values;
}

Array setxor1d(const Array& a, const Array& b, bool assume_unique) {
  check_same_device("setxor1d", a, b);
  Array both = merged("setxor1d", unique_or_raveled("setxor1d", a, assume_unique),
                      unique_or_raveled("setxor1d", b, assume_unique));
  std::int64_t n = both.size();
  if (n < 2) return both;
  // Neither equal to the one before nor to the one behind.
  Array differs = not_equal(both[Slice(0, n - 1)], both[Slice(1, none)]);
  Array edge = ones({1}, bool_, a.device());
  return rensa::detail::true_elements("setxor1d", both,
                                      concatenate({edge, differs}) & concatenate({differs, edge}));
}

}  // namespace xp

}  // namespace rensa

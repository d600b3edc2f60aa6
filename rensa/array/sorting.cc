// Sorting and searching.
#include "rensa/array/sorting.h"

#include <fmt/format.h>

#include <vector>

#include "rensa/array/along_axis.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa {

namespace detail {

void sort_in_place(const Array& a, int axis, bool descending, bool stable) {
  check_defined("sort", a);
  check_writable("sort", a);
  a.assign(xp::sort(a, {.axis = axis, .descending = descending, .stable = stable}));
}

}  // namespace detail

namespace xp {

using rensa::detail::along_one_axis;
using rensa::detail::check_defined;
using rensa::detail::from_rows;
using rensa::detail::rows_along;

namespace {

// What sorts rows: sorted_rows or order_of_rows.
using RowSort = Array(const char*, const Array&, bool, std::int64_t);

Array sort_along(const char* operation, RowSort sort_rows, const Array& a, Axes axis,
                 bool descending, std::int64_t kth) {
  auto [array, along] = along_one_axis(operation, a, axis);
  Array rows = sort_rows(operation, rows_along(array, along), descending, kth);
  return from_rows(rows, array.shape(), along);
}

Array partition_along(const char* operation, RowSort sort_rows, const Array& a,
                      const std::vector<std::int64_t>& kth, const Axes& axis) {
  auto [array, along] = along_one_axis(operation, a, axis);
  if (array.size() == 0) return sort_along(operation, sort_rows, array, along, false, -1);
  std::int64_t n = array.shape()[along], place = -1;
  for (std::int64_t k : kth) {
    if (k < -n || k >= n) {
      throw ValueError(fmt::format("{}: kth {} is out of bounds for axis {} of {}", operation, k,
                                   along, array.view().describe()));
    }
    place = k < 0 ? k + n : k;
  }
  if (kth.size() != 1) place = -1;  // sorted, every place is right
  return sort_along(operation, sort_rows, array, along, false, place);
}

// NumPy lets a 0-d array pass as one of one element.
Array at_least_1d(const char* operation, const Array& a) {
  check_defined(operation, a);
  return a.ndim() == 0 ? a.reshape({1}) : a;
}

void check_1d(const char* operation, const char* argument, const Array& a) {
  check_defined(operation, a);
  if (a.ndim() == 1) return;
  throw ShapeError(fmt::format("{}: {} has to be one-dimensional, not {}", operation, argument,
                               a.view().describe()));
}

}  // namespace

Array sort(const Array& a, const SortOptions& options) {
  return sort_along("sort", rensa::detail::sorted_rows, a, options.axis, options.descending, -1);
}

Array argsort(const Array& a, const SortOptions& options) {
  return sort_along("argsort", rensa::detail::order_of_rows, at_least_1d("argsort", a),
                    options.axis, options.descending, -1);
}

Array lexsort(std::span<const Array> keys, int axis) {
  if (keys.empty()) throw ValueError("lexsort: there is no key to sort by");
  for (const Array& key : keys) {
    check_defined("lexsort", key);
    if (key.shape() == keys[0].shape()) continue;
    throw ShapeError(fmt::format("lexsort: {} and {} differ in shape", keys[0].view().describe(),
                                 key.view().describe()));
  }
  if (keys[0].ndim() == 0) return zeros({}, int64, keys[0].device());
  int along = normalize_axis("lexsort", axis, keys[0].ndim());
  // Sorted by the keys one after another: the last one decides, what it leaves open stays.
  Array order;
  for (const Array& key : keys) {
    check_same_device("lexsort", keys[0], key);
    Array rows = rows_along(key, along);
    if (!order.defined()) {
      order = rensa::detail::order_of_rows("lexsort", rows);
      continue;
    }
    Array next = rensa::detail::order_of_rows("lexsort", rensa::detail::take_places(rows, order));
    order = rensa::detail::take_places(order, next);
  }
  return from_rows(order, keys[0].shape(), along);
}

Array lexsort(std::initializer_list<Array> keys, int axis) {
  return lexsort(std::span<const Array>(keys.begin(), keys.size()), axis);
}

Array lexsort(const Array& keys, int axis) {
  check_defined("lexsort", keys);
  std::vector<Array> rows;
  for (std::int64_t i = 0; keys.ndim() > 0 && i < keys.shape()[0]; ++i) rows.push_back(keys[i]);
  return lexsort(rows, axis);
}

Array msort(const Array& a) { return sort(a, 0); }

Array sort_complex(const Array& a) {
  check_defined("sort_complex", a);
  bool narrow = dtype_kind(a.dtype()) != 'f' && itemsize(a.dtype()) <= 2;
  bool complex = dtype_kind(a.dtype()) == 'c';
  return sort(complex ? a : a.astype(narrow && a.dtype() != bool_ ? complex64 : complex128));
}

Array partition(const Array& a, const IntegerList& kth, Axes axis) {
  return partition_along("partition", rensa::detail::sorted_rows, a, kth.values(), axis);
}

Array argpartition(const Array& a, const IntegerList& kth, Axes axis) {
  return partition_along("argpartition", rensa::detail::order_of_rows,
                         at_least_1d("argpartition", a), kth.values(), axis);
}

Array searchsorted(const Array& a, const Array& v, std::string_view side, const Array& sorter) {
  check_1d("searchsorted", "the sorted array", a);
  check_defined("searchsorted", v);
  if (side != "left" && side != "right") {
    throw ValueError(fmt::format("searchsorted: side is 'left' or 'right', not '{}'", side));
  }
  if (!sorter.defined()) return rensa::detail::places_in("searchsorted", a, v, side == "right");
  check_same_device("searchsorted", a, sorter);
  if (dtype_kind(sorter.dtype()) != 'i' && dtype_kind(sorter.dtype()) != 'u') {
    throw DtypeError(fmt::format("searchsorted: the sorter {} has to be of an integer dtype",
                                 sorter.view().describe()));
  }
  if (sorter.shape() != a.shape()) {
    throw ShapeError(fmt::format("searchsorted: the sorter {} has to be of the shape of {}",
                                 sorter.view().describe(), a.view().describe()));
  }
  return rensa::detail::places_in("searchsorted", a, v, side == "right", &sorter);
}

Array searchsorted(const Array& a, Scalar v, std::string_view side, const Array& sorter) {
  check_defined("searchsorted", a);
  return searchsorted(a, full({}, v, a.device()), side, sorter);
}

Array digitize(const Array& x, const Array& bins, bool right) {
  check_defined("digitize", x);
  check_1d("digitize", "the bins", bins);
  if (dtype_kind(x.dtype()) == 'c') {
    throw DtypeError(
        fmt::format("digitize: x {} is complex, which has no order", x.view().describe()));
  }
  std::int64_t n = bins.size();
  if (bins.device().is_cpu() && n > 2) {
    Array low = bins[Slice(none, n - 1)], high = bins[Slice(1, none)];
    if (!all(less_equal(low, high)).item<bool>() && !all(greater_equal(low, high)).item<bool>()) {
      throw ValueError(
          fmt::format("digitize: the bins {} neither rise nor fall", bins.view().describe()));
    }
  }
  return rensa::detail::places_in("digitize", bins, x, !right, nullptr, true);
}

}  // namespace xp

}  // namespace rensa

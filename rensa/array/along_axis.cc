// What the routines along an axis share.
#include "rensa/array/along_axis.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/scan/scan.h"
#include "rensa/operations/search_sorted/search_sorted.h"
#include "rensa/operations/sort/sort.h"
#include "rensa/operations/sort/top_k.h"

namespace rensa::detail {

// --- the axis ---

AlongAxis along_one_axis(const char* operation, const Array& a, Axes axis) {
  check_defined(operation, a);
  if (axis.all()) return {a.reshape({a.size()}), 0};
  unsigned mask = axis.mask(operation, a.ndim());
  int first = 0;
  while (first < a.ndim() && !(mask >> first & 1)) ++first;
  if (mask != 1u << first) {
    throw ValueError(
        fmt::format("{}: takes one axis of {}, or none for all", operation, a.view().describe()));
  }
  return {a, first};
}

namespace {

// The axes of `ndim` dimensions with `from` put at `to`.
Shape moved_axes(int ndim, int from, int to) {
  Shape axes;
  for (int i = 0; i < ndim; ++i) {
    if (i != from) axes.push_back(i);
  }
  axes.insert(to, from);
  return axes;
}

}  // namespace

Array rows_along(const Array& a, int axis) {
  int last = a.ndim() - 1;
  Array moved = axis == last ? a : a.transpose(moved_axes(a.ndim(), axis, last));
  Shape others = a.shape();
  others.erase(axis);
  return moved.ascontiguous().reshape({others.total(), a.shape()[axis]});
}

Array from_rows(const Array& rows, Shape shape, int axis) {
  int last = shape.ndim() - 1;
  Shape moved = shape;
  moved.erase(axis);
  moved.push_back(rows.shape()[1]);
  Array result = rows.reshape(moved);
  return axis == last ? result : result.transpose(moved_axes(shape.ndim(), last, axis)).copy();
}

Array weights_along(const char* operation, const Array& a, const Array& weights, unsigned axes) {
  check_defined(operation, weights);
  if (weights.shape() == a.shape()) return weights;
  Shape reduced, shape = a.shape();
  for (int i = 0; i < a.ndim(); ++i) {
    if (axes >> i & 1) reduced.push_back(shape[i]);
    else shape[i] = 1;
  }
  bool all = reduced.ndim() == a.ndim();
  if (weights.shape() == reduced && !all) return weights.reshape(shape);
  throw ShapeError(
      fmt::format("{}: the weights {} have neither the shape of {} nor that of its reduced axes",
                  operation, weights.view().describe(), a.view().describe()));
}

// --- sorts ---

namespace {

using operations::Sort;

// Sorts `rows` into `out`, the values or the order.
void sort_into(const char* operation, const Array& rows, const Array& out, Operand Sort::*result,
               bool descending, std::int64_t kth) {
  if (out.size() == 0) return;
  Sort op(operation);
  op.descending = descending;
  op.kth = kth;
  op.in = rows.operand();
  op.*result = out.operand();
  launch(op);
}

}  // namespace

Array sorted_rows(const char* operation, const Array& rows, bool descending, std::int64_t kth) {
  Array out = new_array(rows.shape(), rows.dtype(), rows.device());
  sort_into(operation, rows, out, &Sort::values, descending, kth);
  return out;
}

Array order_of_rows(const char* operation, const Array& rows, bool descending, std::int64_t kth) {
  Array out = new_array(rows.shape(), int64, rows.device());
  sort_into(operation, rows, out, &Sort::order, descending, kth);
  return out;
}

Array first_of_rows(const char* operation, const Array& rows, std::int64_t k, bool descending) {
  using operations::TopK;
  Dtype dtype = rows.dtype();
  bool found = k <= TopK::kMost && rows.shape(1) <= TopK::kMostColumns &&
               (dtype == float16 || dtype == bfloat16 || dtype == float32);
  if (!found) return order_of_rows(operation, rows, descending)[{Slice(), Slice(0, k)}];
  Array out = new_array({rows.shape(0), k}, int64, rows.device());
  if (out.size() == 0) return out;
  TopK op(operation);
  op.descending = descending;
  op.in = rows.operand();
  op.order = out.operand();
  launch(op);
  return out;
}

Array take_places(const Array& rows, const Array& places) {
  if (places.size() == 0) return new_array(places.shape(), rows.dtype(), rows.device());
  std::int64_t count = rows.shape()[0], n = rows.shape()[1];
  Array flat = places;
  if (count > 1) flat = flat + xp::arange(0, count * n, n, int64, rows.device()).reshape({-1, 1});
  return xp::take(rows.reshape({-1}), flat);
}

// --- running sums ---

Dtype carrier(Dtype dtype) {
  switch (dtype_kind(dtype)) {
    case 'b':
    case 'i': return int64;
    case 'u': return uint64;
    case 'f': return dtype == float64 ? float64 : float32;
    default: return dtype;
  }
}

Array running(const char* operation, bool product, const Array& a, int axis, Dtype dtype) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < a.ndim(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : a.shape()[i];
  Shape shape = {outer, a.shape()[axis], inner};
  bool as_stored = dtype_kind(dtype) == 'f' && itemsize(dtype) == 2 && a.device().is_cuda() &&
                   !operations::Scan::has_long_rows(shape);
  Dtype carried = as_stored ? dtype : carrier(dtype);
  Array in = a.astype(dtype, false).astype(carried, false).ascontiguous();
  Array out = new_array(a.shape(), carried, a.device());
  if (out.size() > 0) {
    operations::Scan op(operation, product);
    op.in = in.reshape(shape).operand();
    op.out = out.reshape(shape).operand();
    launch(op);
  }
  return out.astype(dtype, false);
}

// --- searches ---

Array places_in(const char* operation, const Array& sorted, const Array& values, bool right,
                const Array* sorter, bool either_way) {
  check_same_device(operation, sorted, values);
  Dtype common = promote_types(sorted.dtype(), values.dtype());
  Array a = sorted.astype(common, false).ascontiguous();
  Array v = values.astype(common, false).ascontiguous(), order;
  Array out = new_array(values.shape(), int64, values.device());
  if (out.size() == 0) return out;
  operations::SearchSorted op(operation);
  op.right = right;
  op.either_way = either_way;
  op.sorted = a.operand();
  op.values = v.operand();
  if (sorter) {
    order = sorter->astype(int64, false).ascontiguous();
    op.sorter = order.operand();
  }
  op.positions = out.operand();
  launch(op);
  return out;
}

Array found_in(const char* operation, const Array& sorted, const Array& values, bool invert) {
  Array v = values.ascontiguous(), out = new_array(values.shape(), bool_, values.device());
  if (out.size() == 0) return out;
  operations::SearchSorted op(operation);
  op.invert = invert;
  op.sorted = sorted.operand();
  op.values = v.operand();
  op.found = out.operand();
  launch(op);
  return out;
}

}  // namespace rensa::detail

// Norms, made of elementwise work, reductions and singular values.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "rensa/array/linalg_internal.h"
#include "rensa/core/error.h"

namespace rensa::xp::linalg {

using rensa::detail::real_dtype;
using rensa::detail::real_pairs;

Ord::Ord(const char* name) {
  if (!name) throw ValueError("linalg.norm: the order is a null pointer");
  std::string_view text = name;
  if (text == "fro" || text == "f") kind_ = Kind::fro;
  else if (text == "nuc") kind_ = Kind::nuc;
  else throw ValueError(fmt::format("linalg.norm: \"{}\" is not \"fro\" or \"nuc\"", text));
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

[[noreturn]] void throw_order(const char* name, const char* what, const Array& x) {
  throw ValueError(
      fmt::format("{}: no norm of {} has this order: {}", name, what, x.view().describe()));
}

// Floats and complex numbers stay; integers are taken as float64.
Array inexact(const Array& x) {
  char kind = dtype_kind(x.dtype());
  return kind == 'f' || kind == 'c' ? x : x.astype(float64);
}

Array euclidean(const Array& x, unsigned axes) {
  if (dtype_kind(x.dtype()) != 'c') return rensa::detail::reduce_axes(reduction::norm, x, axes);
  if (x.ndim() == kMaxNdim) return euclidean(xp::absolute(x), axes);
  return rensa::detail::reduce_axes(reduction::norm, real_pairs(x), axes | 1u << x.ndim())
      .squeeze(-1);
}

// The greatest (least) along one axis, which stays; the greatest of nothing is 0.
Array extreme(const Array& sizes, int axis, bool greatest) {
  if (!greatest) return xp::min(sizes, axis, true);
  if (sizes.shape(axis) != 0) return xp::max(sizes, axis, true);
  return xp::sum(sizes, axis, true);
}

// All axes stay, the reduced ones with extent 1.
Array vector_norm_along(const char* name, const Array& x, int axis, Ord ord) {
  if (ord.kind() == Ord::Kind::fro || ord.kind() == Ord::Kind::nuc) throw_order(name, "vectors", x);
  if (ord.kind() == Ord::Kind::none || ord.is(2)) return euclidean(x, 1u << axis);
  if (ord.is(0)) return xp::sum(xp::not_equal(x, 0).astype(real_dtype(x.dtype())), axis, true);
  Array sizes = xp::absolute(x);
  if (std::isinf(ord.value())) return extreme(sizes, axis, ord.value() > 0);
  if (ord.is(1)) return xp::sum(sizes, axis, true);
  return xp::power(xp::sum(xp::power(sizes, ord.value()), axis, true), 1 / ord.value());
}

Array singular_norm(const char* name, const Array& x, int row, int column, Ord ord) {
  Shape order;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i != row && i != column) order.push_back(i);
  }
  order.push_back(row);
  order.push_back(column);
  Array s = rensa::detail::svd(name, x.transpose(order), false, false).S;
  Array result = ord.kind() == Ord::Kind::nuc ? xp::sum(s, -1, true)
                                              : extreme(s, s.ndim() - 1, ord.value() > 0);
  Shape shape = x.shape();
  shape[row] = shape[column] = 1;
  return result.reshape(shape);
}

Array matrix_norm_along(const char* name, const Array& x, int row, int column, Ord ord) {
  if (ord.kind() == Ord::Kind::none || ord.kind() == Ord::Kind::fro) {
    return euclidean(x, 1u << row | 1u << column);
  }
  if (ord.kind() == Ord::Kind::nuc || std::abs(ord.value()) == 2) {
    return singular_norm(name, x, row, column, ord);
  }
  bool columns = std::abs(ord.value()) == 1;
  if (!columns && !std::isinf(ord.value())) throw_order(name, "matrices", x);
  Array sums = xp::sum(xp::absolute(x), columns ? row : column, true);
  return extreme(sums, columns ? column : row, ord.value() > 0);
}

Array without(const Array& result, const Array& x, const Shape& axes, bool keepdims) {
  if (keepdims) return result;
  Shape shape;
  for (int i = 0; i < x.ndim(); ++i) {
    bool reduced = false;
    for (std::int64_t axis : axes) reduced |= axis == i;
    if (!reduced) shape.push_back(x.shape()[i]);
  }
  return result.reshape(shape);
}

Shape all_axes(const Array& x) {
  Shape axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}

Array norm_named(const char* name, const Array& x, Ord ord, const AxisList& axis, bool keepdims) {
  rensa::detail::check_defined(name, x);
  if (!axis.given() && ord.kind() == Ord::Kind::none) {
    Array result = euclidean(x, (1u << x.ndim()) - 1);
    return without(result, x, all_axes(x), keepdims);
  }
  Array values = inexact(x);
  Shape axes;
  for (std::int64_t i : axis.given() ? axis.values() : all_axes(x)) {
    axes.push_back(normalize_axis(name, i, x.ndim()));
  }
  if (axes.size() == 1) {
    Array result = vector_norm_along(name, values, static_cast<int>(axes[0]), ord);
    return without(result, x, axes, keepdims);
  }
  if (axes.size() != 2 || axes[0] == axes[1]) {
    throw ValueError(
        fmt::format("{}: a norm goes over one axis or two different ones, not {} of {}", name,
                    axes.str(), x.view().describe()));
  }
  Array result =
      matrix_norm_along(name, values, static_cast<int>(axes[0]), static_cast<int>(axes[1]), ord);
  return without(result, x, axes, keepdims);
}

// `x` with `axes` made one, at the front.
Array flattened(const char* name, const Array& x, const Shape& axes) {
  Shape order = axes, shape = {1};
  for (int i = 0; i < axes.size(); ++i) {
    order[i] = normalize_axis(name, axes[i], x.ndim());
    for (int j = 0; j < i; ++j) {
      if (order[j] == order[i]) {
        throw ValueError(fmt::format("{}: an axis stands twice in {}", name, axes.str()));
      }
    }
    shape[0] *= x.shape()[static_cast<int>(order[i])];
  }
  Shape reduced = order;
  for (int i = 0; i < x.ndim(); ++i) {
    bool kept = true;
    for (std::int64_t axis : reduced) kept &= axis != i;
    if (!kept) continue;
    order.push_back(i);
    shape.push_back(x.shape()[i]);
  }
  return x.transpose(order).reshape(shape);
}

}  // namespace

Array norm(const Array& x, Ord ord, AxisList axis, bool keepdims) {
  return norm_named("linalg.norm", x, ord, axis, keepdims);
}

Array norm(const Array& x, const NormOptions& o) { return norm(x, o.ord, o.axis, o.keepdims); }

Array vector_norm(const Array& x, const VectorNormOptions& options) {
  const AxisList& axis = options.axis;
  const char* name = "linalg.vector_norm";
  rensa::detail::check_defined(name, x);
  Shape axes = axis.given() ? axis.values() : all_axes(x);
  Array values = inexact(x);
  Array result = vector_norm_along(name, flattened(name, values, axes), 0, options.ord).squeeze(0);
  if (!options.keepdims) return result;
  Shape shape = x.shape();
  for (std::int64_t i : axes) shape[normalize_axis(name, i, x.ndim())] = 1;
  return result.reshape(shape);
}

Array matrix_norm(const Array& x, const MatrixNormOptions& options) {
  rensa::detail::check_matrices("linalg.matrix_norm", x);
  return norm_named("linalg.matrix_norm", x, options.ord, {-2, -1}, options.keepdims);
}

Array cond(const Array& x, Ord p) {
  const char* name = "linalg.cond";
  rensa::detail::check_matrices(name, x);
  if (x.shape(-1) == 0 || x.shape(-2) == 0) {
    throw ShapeError(fmt::format("{}: {} is empty", name, x.view().describe()));
  }
  Array result;
  if (p.kind() == Ord::Kind::none || std::abs(p.value()) == 2) {
    Array s = rensa::detail::svd(name, x, false, false).S;
    Array greatest = s[{ellipsis, 0}], least = s[{ellipsis, -1}];
    result = p.is(-2) ? xp::divide(least, greatest) : xp::divide(greatest, least);
  } else {
    Array inverse = rensa::detail::inverse(name, x, false);
    Array values = x.astype(inverse.dtype(), false);
    result = xp::multiply(norm_named(name, values, p, {-2, -1}, false),
                          norm_named(name, inverse, p, {-2, -1}, false));
  }
  // A singular matrix is infinitely far from being well-behaved, unless it held NaN already.
  Array singular = xp::logical_and(xp::isnan(result),
                                   xp::logical_not(xp::any(xp::isnan(xp::absolute(x)), {-2, -1})));
  return xp::where(singular, kInfinity, result);
}

}  // namespace rensa::xp::linalg

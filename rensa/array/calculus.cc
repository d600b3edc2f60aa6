#include "rensa/array/calculus.h"

#include <fmt/format.h>

#include <cstdlib>

#include "rensa/array/internal.h"
#include "rensa/array/linalg_internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::copy_elements;
using rensa::detail::new_array;
using rensa::detail::slice_along;

// --- differences ---
namespace {

// `end`, what is joined to `a` along an axis: a 0-d one once at each place.
Array joinable(const Array& end, const Array& a, int axis) {
  if (end.ndim() != 0) return end;
  Shape shape = a.shape();
  shape[axis] = 1;
  return end.broadcast_to(shape);
}

Array difference(const Array& a, int axis) {
  std::int64_t count = std::max<std::int64_t>(a.shape()[axis] - 1, 0);
  Array later = slice_along(a, axis, a.shape()[axis] - count, count);
  Array earlier = slice_along(a, axis, 0, count);
  Ufunc ufunc = a.dtype() == bool_ ? ufunc::not_equal : ufunc::subtract;
  return rensa::detail::elementwise("diff", ufunc, {later, earlier}, nullptr);
}

}  // namespace

Array diff(const Array& a, int n, int axis, const Array& prepend, const Array& append) {
  check_defined("diff", a);
  if (n < 0) throw ValueError(fmt::format("diff: order {} is negative", n));
  if (n == 0) return a;
  int along = normalize_axis("diff", axis, a.ndim());
  std::vector<Array> parts;
  if (prepend.defined()) parts.push_back(joinable(prepend, a, along));
  parts.push_back(a);
  if (append.defined()) parts.push_back(joinable(append, a, along));
  Array result = parts.size() == 1 ? a : concatenate(parts, along);
  // After as many differences as there are elements nothing is left.
  std::int64_t extent = result.shape()[along];
  if (n >= extent) return difference(slice_along(result, along, 0, 0), along);
  for (; n > 0; --n) result = difference(result, along);
  return result;
}

Array diff(const Array& a, const DiffOptions& o) {
  return diff(a, o.n, o.axis, o.prepend ? *o.prepend : Array(), o.append ? *o.append : Array());
}

Array ediff1d(const Array& a, const Array& to_end, const Array& to_begin) {
  check_defined("ediff1d", a);
  Array flat = a.ravel(), last = to_end, first = to_begin;
  std::int64_t count = std::max<std::int64_t>(flat.size() - 1, 0), before = 0, after = 0;
  for (auto [end, size] : {std::pair{&first, &before}, std::pair{&last, &after}}) {
    if (!end->defined()) continue;
    check_same_device("ediff1d", a, *end);
    rensa::detail::check_casting("ediff1d", end->dtype(), a.dtype(), "same_kind");
    *end = end->ravel();
    *size = end->size();
  }
  Array out = new_array({checked_add("ediff1d", checked_add("ediff1d", before, count), after)},
                        a.dtype(), a.device());
  if (before > 0) copy_elements("ediff1d", first, slice_along(out, 0, 0, before));
  if (after > 0) copy_elements("ediff1d", last, slice_along(out, 0, before + count, after));
  Array middle = slice_along(out, 0, before, count);
  Array later = slice_along(flat, 0, flat.size() - count, count);
  rensa::detail::elementwise("ediff1d", ufunc::subtract, {later, slice_along(flat, 0, 0, count)},
                             &middle);
  return out;
}

// --- gradient ---
namespace {

// Three samples weighted by numbers or by arrays.
template <class Weight>
Array weighted(const Weight& a, const Array& x, const Weight& b, const Array& y, const Weight& c,
               const Array& z) {
  return a * x + b * y + c * z;
}

// One axis of gradient(): `f` is floating, `out` is where the result goes.
struct GradientAxis {
  Array f, out;
  int axis;

  std::int64_t extent() const { return f.shape()[axis]; }
  // `count` samples from `start` on, which counts from the end if negative.
  Array samples(std::int64_t start, std::int64_t count = 1) const {
    return slice_along(f, axis, start < 0 ? start + extent() : start, count);
  }
  void store(std::int64_t start, const Array& values) const {
    std::int64_t count = values.shape()[axis];
    copy_elements("gradient", values,
                  slice_along(out, axis, start < 0 ? start + extent() : start, count));
  }

  void even(double h, int edge_order) const {
    std::int64_t n = extent();
    store(1, (samples(2, n - 2) - samples(0, n - 2)) / (2 * h));
    if (edge_order == 1) {
      store(0, (samples(1) - samples(0)) / h);
      store(-1, (samples(-1) - samples(-2)) / h);
      return;
    }
    store(0, weighted<Scalar>(-1.5 / h, samples(0), 2 / h, samples(1), -0.5 / h, samples(2)));
    store(-1, weighted<Scalar>(0.5 / h, samples(-3), -2 / h, samples(-2), 1.5 / h, samples(-1)));
  }

  // `h` are the distances between neighbours, shaped to lie along the axis.
  void uneven(const Array& h, int edge_order) const {
    std::int64_t n = extent();
    auto step = [&](std::int64_t start, std::int64_t count) {
      return slice_along(h, axis, start, count);
    };
    Array h1 = step(0, n - 2), h2 = step(1, n - 2);
    store(1, weighted(-h2 / (h1 * (h1 + h2)), samples(0, n - 2), (h2 - h1) / (h1 * h2),
                      samples(1, n - 2), h1 / (h2 * (h1 + h2)), samples(2, n - 2)));
    Array first = step(0, 1), last = step(n - 2, 1);
    if (edge_order == 1) {
      store(0, (samples(1) - samples(0)) / first);
      store(-1, (samples(-1) - samples(-2)) / last);
      return;
    }
    h1 = first;
    h2 = step(1, 1);
    store(0, weighted(-(h1 * 2.0 + h2) / (h1 * (h1 + h2)), samples(0), (h1 + h2) / (h1 * h2),
                      samples(1), -h1 / (h2 * (h1 + h2)), samples(2)));
    h1 = step(n - 3, 1);
    h2 = last;
    store(-1, weighted(h2 / (h1 * (h1 + h2)), samples(-3), -(h2 + h1) / (h1 * h2), samples(-2),
                       (h2 * 2.0 + h1) / (h2 * (h1 + h2)), samples(-1)));
  }
};

// The distances between the coordinates of an axis, shaped to lie along it.
Array distances(const Array& coordinates, const Array& f, int axis) {
  if (coordinates.ndim() != 1 || coordinates.size() != f.shape()[axis]) {
    throw ShapeError(fmt::format("gradient: {} are not coordinates along axis {} of {}",
                                 coordinates.view().describe(), axis, f.view().describe()));
  }
  check_same_device("gradient", f, coordinates);
  char kind = dtype_kind(coordinates.dtype());
  bool inexact = kind == 'f' || kind == 'c';
  Shape along = Shape::filled(f.ndim(), 1);
  along[axis] = coordinates.size() - 1;
  return diff(inexact ? coordinates : coordinates.astype(float64)).reshape(along);
}

}  // namespace

std::vector<Array> gradient(const Array& f, const std::vector<GradientSpacing>& spacing,
                            const GradientOptions& options) {
  check_defined("gradient", f);
  int edge_order = options.edge_order;
  if (edge_order != 1 && edge_order != 2) {
    throw ValueError(fmt::format("gradient: edge_order {} is neither 1 nor 2", edge_order));
  }
  Shape along;
  if (options.axis.given()) along = options.axis.values();
  else
    for (int i = 0; i < f.ndim(); ++i) along.push_back(i);
  auto count = static_cast<std::size_t>(along.size());
  if (spacing.size() > 1 && spacing.size() != count) {
    throw ValueError(
        fmt::format("gradient: {} spacings are given for {} axes", spacing.size(), count));
  }
  char kind = dtype_kind(f.dtype());
  bool inexact = kind == 'f' || kind == 'c';
  Array samples = inexact ? f : f.astype(float64);
  std::vector<Array> results;
  for (std::size_t i = 0; i < count; ++i) {
    int axis = normalize_axis("gradient", along[static_cast<int>(i)], f.ndim());
    if (f.shape()[axis] < edge_order + 1) {
      throw ShapeError(fmt::format("gradient: axis {} of {} is shorter than {} samples", axis,
                                   f.view().describe(), edge_order + 1));
    }
    GradientSpacing h =
        spacing.empty() ? GradientSpacing(1.0) : spacing[spacing.size() == 1 ? 0 : i];
    GradientAxis work = {samples, empty_like(samples), axis};
    if (h.coordinates().defined()) {
      work.uneven(distances(h.coordinates(), f, axis), edge_order);
    } else {
      work.even(h.distance(), edge_order);
    }
    results.push_back(work.out);
  }
  return results;
}

// --- integrals ---
namespace {

// The sums of neighbouring samples.
Array neighbour_sums(const Array& y, int axis) {
  std::int64_t count = std::max<std::int64_t>(y.shape()[axis] - 1, 0);
  return slice_along(y, axis, y.shape()[axis] - count, count) + slice_along(y, axis, 0, count);
}

}  // namespace

Array trapezoid(const Array& y, double dx, int axis) {
  check_defined("trapezoid", y);
  int along = normalize_axis("trapezoid", axis, y.ndim());
  return (dx * neighbour_sums(y, along) / 2.0).sum(along);
}

Array trapezoid(const Array& y, const Array& x, int axis) {
  check_defined("trapezoid", y);
  check_defined("trapezoid", x);
  int along = normalize_axis("trapezoid", axis, y.ndim());
  Array d = x.ndim() == 1 ? diff(x) : diff(x, 1, axis);
  if (x.ndim() == 1) {
    Shape shape = Shape::filled(y.ndim(), 1);
    shape[along] = d.size();
    d = d.reshape(shape);
  }
  Array areas = d * neighbour_sums(y, along) / 2.0;
  return areas.sum(along - y.ndim());
}

Array trapezoid(const Array& y, const TrapezoidOptions& o) {
  return o.x ? trapezoid(y, *o.x, o.axis) : trapezoid(y, o.dx, o.axis);
}

// --- cross products ---
namespace {

Array component(const Array& vectors, std::int64_t i) {
  return slice_along(vectors, vectors.ndim() - 1, i, 1).squeeze(-1);
}

// out = a[i] * b[j] - a[j] * b[i], where a third component that is not there is 0.
void cross_component(const Array& a, const Array& b, std::int64_t i, std::int64_t j,
                     const Array& out) {
  auto product = [&](std::int64_t of_a, std::int64_t of_b, const Array* into) {
    return rensa::detail::elementwise("cross", ufunc::multiply,
                                      {component(a, of_a), component(b, of_b)}, into);
  };
  bool first = i < a.shape(-1) && j < b.shape(-1), second = j < a.shape(-1) && i < b.shape(-1);
  if (first) product(i, j, &out);
  if (!second) return;
  if (first) {
    rensa::detail::elementwise("cross", ufunc::subtract, {out, product(j, i, nullptr)}, &out);
  } else {
    rensa::detail::elementwise("cross", ufunc::negative, {product(j, i, nullptr)}, &out);
  }
}

}  // namespace

Array cross(const Array& a, const Array& b, int axisa, int axisb, int axisc) {
  check_defined("cross", a);
  check_defined("cross", b);
  check_same_device("cross", a, b);
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  Array x = moveaxis(a, normalize_axis("cross", axisa, a.ndim()), -1).astype(dtype, false);
  Array y = moveaxis(b, normalize_axis("cross", axisb, b.ndim()), -1).astype(dtype, false);
  std::int64_t p = x.shape(-1), q = y.shape(-1);
  if (p < 2 || p > 3 || q < 2 || q > 3) {
    throw ShapeError(
        fmt::format("cross: {} and {} do not have 2 or 3 components along axes {} "
                    "and {}",
                    a.view().describe(), b.view().describe(), axisa, axisb));
  }
  if (dtype == bool_) {
    throw DtypeError(
        fmt::format("cross: {} and {} are not numbers", a.view().describe(), b.view().describe()));
  }
  Shape shape = rensa::broadcast_shapes("cross", component(x, 0).shape(), component(y, 0).shape());
  if (p == 2 && q == 2) {
    Array out = new_array(shape, dtype, a.device());
    cross_component(x, y, 0, 1, out);
    return out;
  }
  shape.push_back(3);
  int place = normalize_axis("cross", axisc, shape.ndim());
  Array out = new_array(shape, dtype, a.device());
  for (std::int64_t i = 0; i < 3; ++i) {
    cross_component(x, y, (i + 1) % 3, (i + 2) % 3, component(out, i));
  }
  return moveaxis(out, -1, place);
}

Array cross(const Array& a, const Array& b, const CrossOptions& o) {
  return o.axis ? cross(a, b, *o.axis, *o.axis, *o.axis) : cross(a, b, o.axisa, o.axisb, o.axisc);
}

Array linalg::cross(const Array& a, const Array& b, int axis) {
  check_defined("cross", a);
  check_defined("cross", b);
  if (a.shape(axis) != 3 || b.shape(axis) != 3) {
    throw ShapeError(fmt::format("cross: {} and {} do not have 3 components along axis {}",
                                 a.view().describe(), b.view().describe(), axis));
  }
  return xp::cross(a, b, axis, axis, axis);
}

// --- covariance ---
namespace {

// The variables of `m` as rows of `dtype`.
Array variables(const Array& m, bool rowvar, Dtype dtype) {
  check_defined("cov", m);
  if (m.ndim() > 2) {
    throw ShapeError(fmt::format("cov: {} has more than 2 dimensions", m.view().describe()));
  }
  Array rows = atleast_2d(m.astype(dtype, false));
  return rowvar || m.ndim() == 1 ? rows : rows.transpose();
}

Array check_weights(const Array& weights, const Array& x) {
  if (weights.ndim() != 1 || weights.size() != x.shape(1)) {
    throw ShapeError(fmt::format("cov: {} are not weights of the {} samples",
                                 weights.view().describe(), x.shape(1)));
  }
  return weights.astype(float64, false);
}

// x @ conj(x * w).T of centered rows.
Array scatter(const Array& x, const Array& w) {
  Array other = dtype_kind(x.dtype()) == 'c' ? conjugate(x) : x;
  return matmul(x, (w.defined() ? other * w : other).transpose());
}

}  // namespace

Array cov(const Array& m, const Array& y, const CovOptions& options) {
  check_defined("cov", m);
  Dtype common = promote_types(m.dtype(), float64);
  if (y.defined()) common = promote_types(common, y.dtype());
  Dtype dtype = options.dtype.value_or(common);
  Array x = variables(m, options.rowvar, dtype);
  if (x.shape(0) == 0) return empty({0, 0}, float64, x.device());
  if (y.defined()) {
    Array more = variables(y, true, dtype);
    if (!options.rowvar && more.shape(0) != 1) more = more.transpose();
    x = concatenate({x, more}, 0);
  }
  int ddof = options.ddof.value_or(options.bias ? 0 : 1);
  Array frequencies = options.fweights ? *options.fweights : Array();
  Array importance = options.aweights ? *options.aweights : Array();
  Array w;
  if (frequencies.defined()) w = check_weights(frequencies, x);
  if (importance.defined()) {
    Array a = check_weights(importance, x);
    w = w.defined() ? w * a : a;
  }
  if (!w.defined()) {
    Array c = scatter(x - mean(x, 1, true), w);
    double count = static_cast<double>(std::max<std::int64_t>(x.shape(1) - ddof, 0));
    c *= 1 / count;
    return c.squeeze();
  }
  Array total = w.sum();
  Array c = scatter(x - sum(x * w, 1, true) / total, w);
  Array count = total;
  if (ddof != 0 && importance.defined()) {
    count = total - static_cast<double>(ddof) * sum(w * importance.astype(float64, false)) / total;
  } else if (ddof != 0) {
    count = total - static_cast<double>(ddof);
  }
  return (c * (1.0 / maximum(count, 0.0))).squeeze();
}

Array corrcoef(const Array& x, const Array& y, const CorrcoefOptions& options) {
  Array c = cov(x, y, {.rowvar = options.rowvar, .dtype = options.dtype});
  if (c.ndim() == 0) return c / c;
  Dtype real = rensa::detail::real_dtype(c.dtype());
  Array deviation = sqrt(diag(c).astype(real, false));  // the diagonal is real
  c /= deviation.expand_dims(1);
  c /= deviation;
  if (c.dtype() == real) return clip(c, -1, 1);
  Array parts = rensa::detail::real_pairs(c);  // which are clipped each
  parts.assign(clip(parts, -1, 1));
  return c;
}

}  // namespace rensa::xp

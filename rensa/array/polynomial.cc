#include "rensa/array/polynomial.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/internal.h"
#include "rensa/array/linalg.h"
#include "rensa/array/signal.h"
#include "rensa/core/error.h"

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::slice_along;

namespace {

Array coefficients(const char* name, const Array& p) {
  check_defined(name, p);
  Array flat = atleast_1d(p);
  if (flat.ndim() == 1) return flat;
  throw ShapeError(
      fmt::format("{}: coefficients {} have more than one dimension", name, p.view().describe()));
}

// Both operands with as many coefficients.
std::pair<Array, Array> aligned(const char* name, const Array& a, const Array& b) {
  Array x = coefficients(name, a), y = coefficients(name, b);
  check_same_device(name, x, y);
  std::int64_t missing = x.size() - y.size();
  if (missing > 0) y = pad(y, {missing, std::int64_t{0}});
  if (missing < 0) x = pad(x, {-missing, std::int64_t{0}});
  return {x, y};
}

// The distance from 1 to the next number.
double epsilon_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return 0x1p-10;
    case Dtype::bfloat16: return 0x1p-7;
    case Dtype::float32:
    case Dtype::complex64: return 0x1p-23;
    default: return 0x1p-52;
  }
}

void check_times(const char* name, int m) {
  if (m >= 0) return;
  throw ValueError(fmt::format("{}: {} times is fewer than none", name, m));
}

}  // namespace

Array polyval(const Array& p, const Array& x) {
  Array factors = coefficients("polyval", p);
  check_defined("polyval", x);
  check_same_device("polyval", p, x);
  Array y = zeros_like(x);
  for (std::int64_t i = 0; i < factors.size(); ++i) {
    y = y * x + slice_along(factors, 0, i, 1).reshape({});
  }
  return y;
}

Array polyadd(const Array& a, const Array& b) {
  auto [x, y] = aligned("polyadd", a, b);
  return x + y;
}

Array polysub(const Array& a, const Array& b) {
  auto [x, y] = aligned("polysub", a, b);
  return x - y;
}

Array polymul(const Array& a, const Array& b) {
  return convolve(poly1d(a).coeffs(), poly1d(b).coeffs());
}

Array polyder(const Array& p, int m) {
  check_times("polyder", m);
  Array result = coefficients("polyder", p);
  // After as many derivatives as there are coefficients nothing is left.
  if (m >= result.size()) {
    result = slice_along(result, 0, 0, 0);
    m = std::min(m, 1);
  }
  for (; m > 0; --m) {
    std::int64_t n = std::max<std::int64_t>(result.size() - 1, 0);
    result = slice_along(result, 0, 0, n) * arange(n, 0, -1, int64, p.device());
  }
  return result;
}

Array polyint(const Array& p, int m) {
  check_times("polyint", m);
  Array result = coefficients("polyint", p);
  // After so many divisions a number is 0, infinite or not a number, and stays it.
  constexpr int kAllGone = 512;
  std::int64_t n = result.size();
  for (int i = 0; i < std::min(m, kAllGone); ++i) {
    result = result / arange(n + i, i, -1, int64, p.device());
  }
  return m == 0 ? result : pad(result, {std::int64_t{0}, std::int64_t{m}});
}

Array roots(const Array& p) {
  Array host = coefficients("roots", p).to(cpu());
  Dtype dtype = promote_types(host.dtype(), float32);
  if (dtype_kind(host.dtype()) != 'f' && dtype_kind(host.dtype()) != 'c') dtype = float64;
  Dtype result = promote_types(dtype, complex64);
  host = trim_zeros(host.astype(dtype, false), "f");
  Array inner = trim_zeros(host, "b");
  std::int64_t n = inner.size(), zeros_at_0 = host.size() - n;
  Array found = zeros({std::max<std::int64_t>(n - 1, 0) + zeros_at_0}, result, cpu());
  if (n > 1) {
    Array companion = eye(n - 1, n - 1, -1, dtype, cpu());
    companion[0].assign(negative(slice_along(inner, 0, 1, n - 1)) / Array(inner[0]));
    slice_along(found, 0, 0, n - 1).assign(linalg::eigvals(companion));
  }
  return found.to(p.device());
}

Array polyfit(const Array& x, const Array& y, int degree, std::optional<double> rcond,
              const Array& w) {
  check_defined("polyfit", x);
  check_defined("polyfit", y);
  check_same_device("polyfit", x, y);
  if (degree < 0) throw ValueError(fmt::format("polyfit: degree {} is negative", degree));
  bool fits = x.ndim() == 1 && x.size() > 0 && (y.ndim() == 1 || y.ndim() == 2);
  if (!fits || y.shape(0) != x.size()) {
    throw ShapeError(
        fmt::format("polyfit: {} and {} are not points", x.view().describe(), y.view().describe()));
  }
  Array at = x + 0.0, lhs = vander(at, std::int64_t{degree} + 1), rhs = y + 0.0;
  double epsilon = epsilon_of(at.dtype());
  if (w.defined()) {
    if (w.ndim() != 1 || w.size() != x.size()) {
      throw ShapeError(fmt::format("polyfit: {} are not weights of {}", w.view().describe(),
                                   x.view().describe()));
    }
    Array weights = (w + 0.0).expand_dims(1);
    lhs = lhs * weights;
    rhs = rhs.ndim() == 1 ? rhs * weights.squeeze(1) : rhs * weights;
  }
  // Columns of one size keep the small powers in sight.
  Array scale = sqrt(sum(lhs * lhs, 0));
  Array c =
      linalg::lstsq(lhs / scale, rhs, rcond.value_or(static_cast<double>(x.size()) * epsilon)).x;
  return c / (c.ndim() == 2 ? scale.expand_dims(1) : scale);
}

poly1d::poly1d(const Array& values)
    : coefficients_(trim_zeros(coefficients("poly1d", values), "f")) {
  if (coefficients_.size() == 0) coefficients_ = zeros_like(values, {.shape = Shape{1}});
}

Array poly1d::operator[](int power) const {
  if (power < 0 || power > order()) return zeros_like(coefficients_, {.shape = Shape{}});
  return coefficients_[order() - power];
}

poly1d poly1d::operator()(const poly1d& x) const {
  poly1d y(zeros_like(coefficients_, {.shape = Shape{1}}));
  for (std::int64_t i = 0; i < coefficients_.size(); ++i) {
    y = y * x + poly1d(slice_along(coefficients_, 0, i, 1));
  }
  return y;
}

bool operator==(const poly1d& a, const poly1d& b) {
  return array_equal(a.coefficients_, b.coefficients_);
}

Array polyint(const Array& p, int m, const std::vector<Scalar>& k) {
  check_times("polyint", m);
  auto times = static_cast<std::size_t>(m);
  if (k.size() != 1 && k.size() != times) {
    throw ValueError(
        fmt::format("polyint: {} constants for {} integrals; give one, or one each", k.size(), m));
  }
  Array result = p;
  for (std::size_t i = 0; i < times; ++i) {
    result = polyint(result, 1);
    result[-1].fill(k.size() == 1 ? k[0] : k[i]);
  }
  return result;
}

Array poly(const Array& zeros) {
  check_defined("poly", zeros);
  Array at = zeros.ndim() == 2 ? linalg::eigvals(zeros) : atleast_1d(zeros);
  if (at.ndim() != 1) {
    throw ShapeError(
        fmt::format("poly: {} is neither 1-d nor a square matrix", zeros.view().describe()));
  }
  char kind = dtype_kind(at.dtype());
  if (kind != 'f' && kind != 'c') at = at.astype(float64);
  Array result = ones({1}, at.dtype(), at.device());
  for (std::int64_t i = 0; i < at.size(); ++i) {
    Array factor = concatenate({ones({1}, at.dtype(), at.device()), -slice_along(at, 0, i, 1)});
    result = convolve(result, factor);
  }
  return result;
}

namespace polynomial {

namespace {

// How many coefficients are left when those at the end that are at most `tol` go.
// How many elements there are up to the last that `counts`.
std::int64_t up_to_last(const Array& counts) {
  std::vector<bool> large = counts.to_vector<bool>();
  auto last = std::find(large.rbegin(), large.rend(), true);
  return static_cast<std::int64_t>(large.rend() - last);
}

Array floating(const char* name, const Array& a) {
  Array c = coefficients(name, a);
  char kind = dtype_kind(c.dtype());
  return kind == 'f' || kind == 'c' ? c : c.astype(float64);
}

}  // namespace

Array polyvander(const Array& x, int deg) {
  check_defined("polyvander", x);
  if (deg < 0) throw ValueError(fmt::format("polyvander: the degree {} is negative", deg));
  char kind = dtype_kind(x.dtype());
  Array in = atleast_1d(kind == 'f' || kind == 'c' ? x : x.astype(float64));
  std::vector<Array> powers = {ones_like(in)};
  for (int i = 1; i <= deg; ++i) powers.push_back(powers.back() * in);
  return stack(powers, -1);
}

Array polycompanion(const Array& c) {
  Array a = floating("polycompanion", c);
  std::int64_t n = a.size() - 1;
  if (n < 1) throw ValueError("polycompanion: the polynomial has no degree");
  Array matrix = eye(n, {.k = -1, .dtype = a.dtype(), .device = a.device()});
  matrix[{Slice(), Slice(n - 1, n)}] -=
      (slice_along(a, 0, 0, n) / slice_along(a, 0, n, 1)).reshape({n, 1});
  return matrix;
}

Array polyvalfromroots(const Array& x, const Array& r, bool tensor) {
  check_defined("polyvalfromroots", x);
  check_defined("polyvalfromroots", r);
  Array at = atleast_1d(r);
  if (tensor) {
    Shape shape = at.shape();
    for (int i = 0; i < x.ndim(); ++i) shape.push_back(1);
    at = at.reshape(shape);
  } else if (x.ndim() >= at.ndim()) {
    throw ShapeError(fmt::format("polyvalfromroots: without tensor {} needs more axes than {}",
                                 r.view().describe(), x.view().describe()));
  }
  char kind = dtype_kind(at.dtype());
  return prod((kind == 'f' || kind == 'c' ? x : x.astype(promote_types(x.dtype(), float64))) - at,
              0);
}

std::vector<Array> as_series(std::span<const Array> arrays, bool trim) {
  std::vector<Array> series;
  Dtype dtype = float16;
  for (const Array& a : arrays) {
    series.push_back(floating("as_series", a));
    if (series.back().size() == 0) {
      throw ValueError(fmt::format("as_series: {} has no coefficients", a.view().describe()));
    }
    dtype = promote_types(dtype, series.back().dtype());
  }
  for (Array& s : series) s = (trim ? trimseq(s) : s).astype(dtype);
  return series;
}

std::vector<Array> as_series(std::initializer_list<Array> arrays, bool trim) {
  return as_series(std::span<const Array>(arrays.begin(), arrays.size()), trim);
}

Array trimseq(const Array& seq) {
  Array c = coefficients("trimseq", seq);
  if (c.size() == 0) return c;
  return slice_along(c, 0, 0, std::max<std::int64_t>(up_to_last(not_equal(c, 0)), 1));
}

Array trimcoef(const Array& c, double tol) {
  if (tol < 0) throw ValueError(fmt::format("trimcoef: tol {} is negative", tol));
  Array a = floating("trimcoef", c);
  if (a.size() == 0) throw ValueError("trimcoef: there are no coefficients");
  std::int64_t count = up_to_last(greater(absolute(a), tol));
  return count > 0 ? slice_along(a, 0, 0, count).copy() : zeros_like(slice_along(a, 0, 0, 1));
}

}  // namespace polynomial

}  // namespace rensa::xp

#include "rensa/array/polynomial.h"

#include <fmt/format.h>

#include <limits>

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
  for (; m > 0; --m) {
    std::int64_t n = std::max<std::int64_t>(result.size() - 1, 0);
    result = slice_along(result, 0, 0, n) * arange(n, 0, -1, int64, p.device());
  }
  return result;
}

Array polyint(const Array& p, int m) {
  check_times("polyint", m);
  Array result = coefficients("polyint", p);
  for (; m > 0; --m) {
    Array powers = arange(result.size(), 0, -1, int64, p.device());
    result = pad(result / powers, {std::int64_t{0}, std::int64_t{1}});
  }
  return result;
}

Array polyfit(const Array& x, const Array& y, int degree) {
  check_defined("polyfit", x);
  check_defined("polyfit", y);
  check_same_device("polyfit", x, y);
  if (degree < 0) throw ValueError(fmt::format("polyfit: a degree of {}", degree));
  bool fits = x.ndim() == 1 && (y.ndim() == 1 || y.ndim() == 2) && x.size() > 0;
  if (!fits || x.shape(0) != y.shape(0)) {
    throw ShapeError(fmt::format("polyfit: x is {} and y {}; x has to be (n,) and y (n,) or (n, k)",
                                 x.view().describe(), y.view().describe()));
  }
  Array points = x + 0.0;
  Array powers = vander(points, degree + 1);
  // Columns of one length, so that high powers do not drown the others.
  Array lengths = sqrt(square(powers).sum(0));
  double epsilon = points.dtype() == float64 ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
  double rcond = static_cast<double>(x.size()) * epsilon;
  Array c = linalg::lstsq(powers / lengths, y + 0.0, rcond).x;
  return c / (y.ndim() == 1 ? lengths : lengths.expand_dims(1));
}

Array roots(const Array& p) {
  Array factors = trim_zeros(coefficients("roots", p), "f");
  Array whole = trim_zeros(factors, "b");
  std::int64_t zero_roots = factors.size() - whole.size();
  bool single = p.dtype() == float32 || p.dtype() == complex64;
  Dtype dtype = single ? complex64 : complex128;
  Array zero = zeros({zero_roots}, dtype, p.device());
  std::int64_t n = whole.size() - 1;
  if (n < 1) return zero;
  // The eigenvalues of the companion matrix.
  Dtype computed = dtype_kind(p.dtype()) == 'c' ? dtype : single ? float32 : float64;
  whole = whole.astype(computed, false);
  Array companion = eye(n, n, -1, computed, p.device());
  companion[0] = -slice_along(whole, 0, 1, n) / Array(whole[0]);
  return concatenate({linalg::eigvals(companion), zero});
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

}  // namespace rensa::xp

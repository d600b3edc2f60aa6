// Elementwise routines made of rows of ops.def.
#include "rensa/array/math.h"

#include <cmath>
#include <limits>

#include "rensa/array/dtype_info.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa::xp {

namespace {

bool is_complex(const Array& a) { return dtype_kind(a.dtype()) == 'c'; }
bool is_integral(const Array& a) {
  char kind = dtype_kind(a.dtype());
  return kind == 'i' || kind == 'u' || kind == 'b';
}

// The real numbers of a complex array that lie `offset` elements into each of its own.
Array part(const Array& a, int offset) {
  ArrayView view = a.view();
  view.dtype = view.dtype == complex64 ? float32 : float64;
  view.data += offset * itemsize(view.dtype);
  return Array(a.storage(), view);
}

// A complex array made of what `f` writes into its parts.
template <class F> Array by_parts(const Array& a, F f) {
  Array out = empty_like(a);
  f(part(a, 0), part(out, 0));
  f(part(a, 1), part(out, 1));
  return out;
}

// As `name` of the options, of what was computed.
Array given_out(const char* name, const Array& result, const UfuncOptions& options) {
  if (!options.out && !options.where && !options.dtype) return result;
  return rensa::detail::elementwise(name, Ufunc::copy, {result}, options);
}

// 10 ** decimals as round_scaled takes it.
double scale_of(int decimals) {
  return decimals < 0 ? -std::pow(10.0, -decimals) : std::pow(10.0, decimals);
}

Array round_real(const Array& a, int decimals, const Array* out) {
  using rensa::detail::elementwise;
  if (decimals == 0) return elementwise("round", Ufunc::rint, {a}, out);
  return elementwise("round", Ufunc::round_scaled, {a, scale_of(decimals)}, out);
}

}  // namespace

Array round(const Array& a, int decimals) {
  rensa::detail::check_defined("round", a);
  if (is_complex(a)) {
    return by_parts(a, [&](const Array& in, const Array& out) { round_real(in, decimals, &out); });
  }
  if (a.dtype() == bool_ || !is_integral(a)) return round_real(a, decimals, nullptr);
  if (decimals >= 0) return a.copy();
  return round_real(a.astype(float64), decimals, nullptr).astype(a.dtype());
}

Array round(const Array& a, int decimals, const UfuncOptions& options) {
  return given_out("round", round(a, decimals), options);
}

std::pair<Array, Array> modf(const Array& a) {
  rensa::detail::check_defined("modf", a);
  Array fraction = rensa::detail::elementwise("modf", Ufunc::fraction, {a}, nullptr);
  Array whole = rensa::detail::elementwise("modf", Ufunc::trunc,
                                           {a.astype(fraction.dtype(), false)}, nullptr);
  return {fraction, whole};
}

std::pair<Array, Array> divmod(const Array& a, const Array& b) {
  return {floor_divide(a, b), remainder(a, b)};
}
std::pair<Array, Array> divmod(const Array& a, Scalar b) {
  return {floor_divide(a, b), remainder(a, b)};
}
std::pair<Array, Array> divmod(Scalar a, const Array& b) {
  return {floor_divide(a, b), remainder(a, b)};
}

Array real(const Array& a) {
  rensa::detail::check_defined("real", a);
  return is_complex(a) ? part(a, 0) : a;
}

Array imag(const Array& a) {
  rensa::detail::check_defined("imag", a);
  return is_complex(a) ? part(a, 1) : zeros_like(a);
}

Array angle(const Array& a, bool deg) {
  rensa::detail::check_defined("angle", a);
  Array radians = is_complex(a) ? arctan2(part(a, 1), part(a, 0)) : arctan2(0, a);
  return deg ? degrees(radians) : radians;
}

Array iscomplex(const Array& a) {
  rensa::detail::check_defined("iscomplex", a);
  return is_complex(a) ? not_equal(part(a, 1), 0) : zeros(a.shape(), bool_, a.device());
}

Array isreal(const Array& a) {
  rensa::detail::check_defined("isreal", a);
  return is_complex(a) ? equal(part(a, 1), 0) : ones(a.shape(), bool_, a.device());
}

bool iscomplexobj(const Array& a) {
  rensa::detail::check_defined("iscomplexobj", a);
  return is_complex(a);
}
bool isrealobj(const Array& a) { return !iscomplexobj(a); }

namespace {

Array real_nan_to_num(const Array& a, double nan, std::optional<double> posinf,
                      std::optional<double> neginf, const Array* out) {
  double greatest = finfo(a.dtype()).max, above = posinf.value_or(greatest);
  double below = neginf.value_or(-greatest);
  // The row makes -x of -inf where it makes x of inf.
  if (below == -above) {
    return rensa::detail::elementwise("nan_to_num", Ufunc::finite_or, {a, nan, above}, out);
  }
  Array most = rensa::detail::elementwise("nan_to_num", Ufunc::finite_or, {a, nan, above}, nullptr);
  return rensa::detail::elementwise("nan_to_num", Ufunc::where, {isneginf(a), below, most}, out);
}

}  // namespace

Array nan_to_num(const Array& a, double nan, std::optional<double> posinf,
                 std::optional<double> neginf) {
  rensa::detail::check_defined("nan_to_num", a);
  if (is_integral(a)) return a.copy();
  if (!is_complex(a)) return real_nan_to_num(a, nan, posinf, neginf, nullptr);
  return by_parts(a, [&](const Array& in, const Array& out) {
    real_nan_to_num(in, nan, posinf, neginf, &out);
  });
}

namespace {

// The 16-bit types have rows of their own: all three compute in float.
template <class A, class B> Array next(const A& a, const B& b, Dtype meets_in) {
  Dtype d = floating_dtype(meets_in);
  Ufunc ufunc = d == float16    ? Ufunc::next_float16
                : d == bfloat16 ? Ufunc::next_bfloat16
                                : Ufunc::next_value;
  return rensa::detail::elementwise("nextafter", ufunc, {a, b}, nullptr);
}

}  // namespace

Array nextafter(const Array& a, const Array& b) {
  return next(a, b, promote_types(floating_dtype(a.dtype()), floating_dtype(b.dtype())));
}
Array nextafter(const Array& a, Scalar b) { return next(a, b, b.result_type(a.dtype())); }
Array nextafter(Scalar a, const Array& b) { return next(a, b, a.result_type(b.dtype())); }

Array ldexp(const Array& a, const Array& b) {
  rensa::detail::check_defined("ldexp", a);
  rensa::detail::check_defined("ldexp", b);
  if (!is_integral(b)) {
    throw DtypeError("ldexp: the exponents " + b.view().describe() + " are no integers");
  }
  Dtype d = floating_dtype(a.dtype());
  return rensa::detail::elementwise("ldexp", Ufunc::ldexp, {a, b.astype(d)}, nullptr);
}
Array ldexp(const Array& a, Scalar b) {
  return rensa::detail::elementwise("ldexp", Ufunc::ldexp, {a, b}, nullptr);
}

Array sinc(const Array& a) {
  rensa::detail::check_defined("sinc", a);
  Array x = is_integral(a) ? a.astype(float64) : a;
  return rensa::detail::elementwise("sinc", Ufunc::sinc, {x}, nullptr);
}

namespace {
Dtype widest(Dtype a, Dtype b) {
  return dtype_kind(a) == 'c' || dtype_kind(b) == 'c' ? complex128 : float64;
}
}  // namespace

Array float_power(const Array& a, const Array& b) {
  return power(a, b, {.dtype = widest(a.dtype(), b.dtype())});
}
Array float_power(const Array& a, Scalar b) {
  return power(a, b, {.dtype = widest(a.dtype(), b.default_dtype())});
}
Array float_power(Scalar a, const Array& b) {
  return power(a, b, {.dtype = widest(a.default_dtype(), b.dtype())});
}

Array amax(const Array& a, Axes axis, bool keepdims) { return max(a, axis, keepdims); }
Array amax(const Array& a, const ReduceOptions& options) { return max(a, options); }
Array amin(const Array& a, Axes axis, bool keepdims) { return min(a, axis, keepdims); }
Array amin(const Array& a, const ReduceOptions& options) { return min(a, options); }

}  // namespace rensa::xp

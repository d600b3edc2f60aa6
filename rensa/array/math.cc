// Elementwise routines made of rows of ops.def.
#include "rensa/array/math.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "rensa/array/calculus.h"
#include "rensa/array/dtype_info.h"
#include "rensa/array/internal.h"
#include "rensa/array/scan.h"
#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/array/ufuncs/floats.h"
#include "rensa/array/ufuncs/trigonometric.h"
#include "rensa/core/error.h"

namespace rensa::ufunc {
extern const UfuncInfo fraction, mantissa, exponent, round_scaled, sinc, bessel_i0, finite_or;
}

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
  return rensa::detail::elementwise(name, ufunc::copy, {result}, options);
}

// 10 ** decimals as round_scaled takes it.
double scale_of(int decimals) {
  double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return decimals < 0 ? -power : power;
}

Array round_real(const Array& a, int decimals, const Array* out) {
  using rensa::detail::elementwise;
  if (decimals == 0) return elementwise("round", ufunc::rint, {a}, out);
  return elementwise("round", ufunc::round_scaled, {a, scale_of(decimals)}, out);
}

}  // namespace

Array round(const Array& a, int decimals) {
  rensa::detail::check_defined("round", a);
  if (is_complex(a)) {
    return by_parts(a, [&](const Array& in, const Array& out) { round_real(in, decimals, &out); });
  }
  if (a.dtype() == bool_ || !is_integral(a)) return round_real(a, decimals, nullptr);
  if (decimals >= 0) return a.copy();
  Array rounded = round_real(a.astype(float64), decimals, nullptr);
  // Beyond 32 bits NumPy's conversion gives the least number.
  if (a.dtype() == int32) rounded = where(absolute(rounded) < 0x1p31, rounded, -0x1p31);
  return rounded.astype(a.dtype());
}

Array round(const Array& a, int decimals, const UfuncOptions& options) {
  return given_out("round", round(a, decimals), options);
}

namespace {

// Both results as the options want them, once both are computed: an output may be an operand.
std::pair<Array, Array> given_outs(const char* name, const Array& first, const Array& second,
                                   const PairOptions& options) {
  auto given = [&](const Array& result, const ArrayOption& out) {
    if (!out && !options.where) return result;
    return rensa::detail::elementwise(
        name, ufunc::copy, {result},
        UfuncOptions{.out = out, .where = options.where, .casting = options.casting});
  };
  return {given(first, options.out.first), given(second, options.out.second)};
}

UfuncOptions computing(const PairOptions& options) {
  return {.dtype = options.dtype, .casting = options.casting};
}

template <class A, class B>
std::pair<Array, Array> divide_both(const A& a, const B& b, const PairOptions& options) {
  UfuncOptions computed = computing(options);
  Array quotient = rensa::detail::elementwise("divmod", ufunc::floor_divide, {a, b}, computed);
  Array rest = rensa::detail::elementwise("divmod", ufunc::remainder, {a, b}, computed);
  return given_outs("divmod", quotient, rest, options);
}

}  // namespace

std::pair<Array, Array> modf(const Array& a, const PairOptions& options) {
  UfuncOptions computed = computing(options);
  Array fraction = rensa::detail::elementwise("modf", ufunc::fraction, {a}, computed);
  Array whole = rensa::detail::elementwise("modf", ufunc::trunc,
                                           {a.astype(fraction.dtype(), false)}, nullptr);
  return given_outs("modf", fraction, whole, options);
}

std::pair<Array, Array> divmod(const Array& a, const Array& b, const PairOptions& options) {
  return divide_both(a, b, options);
}
std::pair<Array, Array> divmod(const Array& a, Scalar b, const PairOptions& options) {
  return divide_both(a, b, options);
}
std::pair<Array, Array> divmod(Scalar a, const Array& b, const PairOptions& options) {
  return divide_both(a, b, options);
}

std::pair<Array, Array> frexp(const Array& a, const PairOptions& options) {
  UfuncOptions computed = computing(options);
  Array mantissa = rensa::detail::elementwise("frexp", ufunc::mantissa, {a}, computed);
  Array exponent = rensa::detail::elementwise("frexp", ufunc::exponent, {a}, computed);
  return given_outs("frexp", mantissa, exponent.astype(int32), options);
}

Array clip(const Array& a, None, Scalar most, const UfuncOptions& options) {
  rensa::detail::check_defined("clip", a);
  bool idle = rensa::detail::is_out_of_range(most, a.dtype()) && 0 < most.real();
  return idle ? positive(a, options) : minimum(a, most, options);
}
Array clip(const Array& a, Scalar least, None, const UfuncOptions& options) {
  rensa::detail::check_defined("clip", a);
  bool idle = rensa::detail::is_out_of_range(least, a.dtype()) && least.real() < 0;
  return idle ? positive(a, options) : maximum(a, least, options);
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
    return rensa::detail::elementwise("nan_to_num", ufunc::finite_or, {a, nan, above}, out);
  }
  Array most = rensa::detail::elementwise("nan_to_num", ufunc::finite_or, {a, nan, above}, nullptr);
  return rensa::detail::elementwise("nan_to_num", ufunc::where, {isneginf(a), below, most}, out);
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

// Integers count as float64 where no dtype is given.
Array of_floats(const char* name, Ufunc ufunc, const Array& a, const UfuncOptions& options) {
  rensa::detail::check_defined(name, a);
  Array x = is_integral(a) && !options.dtype ? a.astype(float64) : a;
  return rensa::detail::elementwise(name, ufunc, {x}, options);
}

}  // namespace

Array sinc(const Array& a, const UfuncOptions& options) {
  return of_floats("sinc", ufunc::sinc, a, options);
}

Array i0(const Array& a, const UfuncOptions& options) {
  return of_floats("i0", ufunc::bessel_i0, a, options);
}

Array real_if_close(const Array& a, double tol) {
  if (!iscomplexobj(a)) return a;
  double least = tol > 1 ? tol * finfo(a.dtype()).eps : tol;
  Array close = all(less(absolute(part(a, 1)), least));
  return close.item<bool>() ? part(a, 0) : a;
}

Array unwrap(const Array& p, const UnwrapOptions& options) {
  rensa::detail::check_defined("unwrap", p);
  int axis = normalize_axis("unwrap", options.axis, p.ndim());
  Scalar period = options.period;
  Array change = diff(p, 1, axis);
  Dtype dtype = period.result_type(change.dtype());
  char kind = dtype_kind(dtype);
  bool whole = kind == 'i' || kind == 'u';
  Scalar high = whole ? Scalar(period.integer() / 2) : Scalar(period.real() / 2);
  Scalar low = whole ? Scalar(-high.integer()) : Scalar(-high.real());
  bool ambiguous = !whole || period.integer() % 2 == 0;
  double jump = options.discont.value_or(period.real() / 2);
  Array nearest = add(remainder(subtract(change, low), period), low);
  if (ambiguous) {
    Array rises = logical_and(equal(nearest, low), greater(change, 0));
    nearest = where(rises, high, nearest);
  }
  Array correction = where(less(absolute(change), jump), 0, subtract(nearest, change));
  Array result = p.astype(dtype);
  std::int64_t n = p.shape()[axis];
  if (n < 2) return result;
  Array rest = rensa::detail::slice_along(result, axis, 1, n - 1);
  rest += cumsum(correction, axis);
  return result;
}

namespace {

bool is_little(const char* name, std::string_view bitorder) {
  if (bitorder == "little") return true;
  if (bitorder == "big") return false;
  throw ValueError(
      fmt::format("{}: bitorder is \"{}\"; it has to be \"big\" or \"little\"", name, bitorder));
}

// A number alone is an array of one.
std::pair<Array, int> packing_axis(const char* name, const Array& a, OptionalAxis axis) {
  return rensa::detail::working_axis(name, a.ndim() == 0 ? a.reshape({1}) : a, axis);
}

// The values of a byte's bits in their order, and how far each is shifted.
Array bit_values(bool little, Device device) {
  std::vector<std::uint8_t> values;
  for (int i = 0; i < 8; ++i)
    values.push_back(static_cast<std::uint8_t>(1 << (little ? i : 7 - i)));
  return array(values, device);
}

}  // namespace

Array packbits(const Array& a, OptionalAxis axis, std::string_view bitorder) {
  rensa::detail::check_defined("packbits", a);
  bool little = is_little("packbits", bitorder);
  if (!is_integral(a)) {
    throw DtypeError("packbits: " + a.view().describe() + " is neither bool nor of integers");
  }
  auto [in, along] = packing_axis("packbits", a, axis);
  Array bits = moveaxis(not_equal(in, 0), along, -1);
  std::int64_t n = bits.shape(-1), bytes = n / 8 + (n % 8 != 0);
  Shape shape = bits.shape();
  shape[shape.ndim() - 1] = bytes * 8;
  Array filled = zeros(shape, uint8, a.device());
  rensa::detail::slice_along(filled, shape.ndim() - 1, 0, n).assign(bits);
  shape[shape.ndim() - 1] = bytes;
  shape.push_back(8);
  Array weighed = multiply(filled.reshape(shape), bit_values(little, a.device()));
  return moveaxis(sum(weighed, {.axis = -1, .dtype = uint8}), -1, along).ascontiguous();
}

Array unpackbits(const Array& a, OptionalAxis axis, std::optional<std::int64_t> count,
                 std::string_view bitorder) {
  rensa::detail::check_defined("unpackbits", a);
  bool little = is_little("unpackbits", bitorder);
  if (a.dtype() != uint8) {
    throw DtypeError("unpackbits: " + a.view().describe() + " is not of dtype uint8");
  }
  auto [in, along] = packing_axis("unpackbits", a, axis);
  Array bytes = moveaxis(in, along, -1);
  Shape shape = bytes.shape(), one = shape;
  one.push_back(1);
  Array truths = not_equal(bitwise_and(bytes.reshape(one), bit_values(little, a.device())), 0);
  shape[shape.ndim() - 1] *= 8;
  Array bits = truths.astype(uint8).reshape(shape);
  std::int64_t n = shape[shape.ndim() - 1];
  std::int64_t wanted = !count ? n : *count < 0 ? n + *count : *count;
  if (wanted < 0) {
    throw ValueError(
        fmt::format("unpackbits: a count of {} leaves less than none of {} bits", *count, n));
  }
  Array kept = rensa::detail::slice_along(bits, shape.ndim() - 1, 0, std::min(n, wanted));
  if (wanted > n) {
    shape[shape.ndim() - 1] = wanted;
    Array longer = zeros(shape, uint8, a.device());
    rensa::detail::slice_along(longer, shape.ndim() - 1, 0, n).assign(kept);
    kept = longer;
  }
  return moveaxis(kept, -1, along).ascontiguous();
}

std::string binary_repr(std::int64_t number, std::optional<int> width) {
  if (number == 0)
    return std::string(static_cast<std::size_t>(std::max(width.value_or(1), 1)), '0');
  auto bits = static_cast<std::uint64_t>(number);
  bool complement = number < 0 && width;
  std::string digits = fmt::format("{:b}", number < 0 && !complement ? 0 - bits : bits);
  if (number < 0 && !width) return "-" + digits;
  // Of the ones in front of a complement one is enough.
  if (complement) digits.erase(0, static_cast<std::size_t>(std::countl_one(bits) - 1));
  if (!width) return digits;
  auto wanted = static_cast<std::ptrdiff_t>(*width);
  if (std::ssize(digits) > wanted) {
    throw ValueError(fmt::format("binary_repr: {} has {} digits, more than the width {}", number,
                                 digits.size(), *width));
  }
  return std::string(static_cast<std::size_t>(wanted - std::ssize(digits)),
                     complement ? '1' : '0') +
         digits;
}

Array amax(const Array& a, Axes axis, bool keepdims) { return max(a, axis, keepdims); }
Array amax(const Array& a, const ReduceOptions& options) { return max(a, options); }
Array amin(const Array& a, Axes axis, bool keepdims) { return min(a, axis, keepdims); }
Array amin(const Array& a, const ReduceOptions& options) { return min(a, options); }

}  // namespace rensa::xp

// The elementwise routines that are not rows of ops.def: those made of several rows, those with
// arguments of their own, and NumPy's other names. None of them waits for the device.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rensa/array/routines.h"

#include "rensa/array/begin_axis_forms.h"

namespace rensa::xp {

// --- rounding ---
/// To `decimals` digits behind the point (before it where negative), halves to even; complex
/// numbers by their parts. Integers stay integers; bool gives float16, as in NumPy.
[[nodiscard]] Array round(const Array& a, int decimals = 0);
Array round(const Array& a, int decimals, const UfuncOptions& options);
[[nodiscard]] inline Array around(const Array& a, int decimals = 0) { return round(a, decimals); }
inline Array around(const Array& a, int decimals, const UfuncOptions& options) {
  return round(a, decimals, options);
}

/// NumPy's keywords of ufuncs with two results: as UfuncOptions, with an `out` for each.
struct PairOptions {
  std::pair<ArrayOption, ArrayOption> out = {};
  ArrayOption where = {};           // bool: elsewhere the results keep what `out` holds, or are 0
  std::optional<Dtype> dtype = {};  // what to compute in
  std::string_view casting = "same_kind";  // what conversions may do, as of UfuncOptions
};
/// {the part behind the point, the part before it}, both with a's sign; floats as of exp.
std::pair<Array, Array> modf(const Array& a, const PairOptions& options = {});
/// {floor_divide, remainder}
std::pair<Array, Array> divmod(const Array& a, const Array& b, const PairOptions& options = {});
std::pair<Array, Array> divmod(const Array& a, Scalar b, const PairOptions& options = {});
std::pair<Array, Array> divmod(Scalar a, const Array& b, const PairOptions& options = {});
/// {mantissa, exponent}, a = mantissa * 2^exponent with 0.5 <= |mantissa| < 1: floats as of exp and
/// int32. The exponent of 0, infinities and NaN is 0.
std::pair<Array, Array> frexp(const Array& a, const PairOptions& options = {});

// --- bounds ---
// clip with one bound. A number that no element reaches, as 300 of uint8, is none.
inline Array clip(const Array& a, None, const Array& most, const UfuncOptions& options = {}) {
  return minimum(a, most, options);
}
Array clip(const Array& a, None, Scalar most, const UfuncOptions& options = {});
inline Array clip(const Array& a, const Array& least, None, const UfuncOptions& options = {}) {
  return maximum(a, least, options);
}
Array clip(const Array& a, Scalar least, None, const UfuncOptions& options = {});

// --- parts of numbers ---
/// A view of the real parts; `a` itself where it is real.
[[nodiscard]] Array real(const Array& a);
/// A view of the imaginary parts; new zeros where `a` is real.
[[nodiscard]] Array imag(const Array& a);
/// The angle of complex numbers, in radians or degrees; 0 or pi of real ones.
[[nodiscard]] Array angle(const Array& a, bool deg = false);
/// Whether the imaginary part is not 0 (is 0), element by element.
[[nodiscard]] Array iscomplex(const Array& a);
[[nodiscard]] Array isreal(const Array& a);  // whether the imaginary part is 0, element by element
/// Whether the dtype is complex (is not).
bool iscomplexobj(const Array& a);
bool isrealobj(const Array& a);
/// NaN made `nan`, infinities the dtype's greatest and least numbers or what is given; complex
/// numbers by their parts. Integers are copied.
[[nodiscard]] Array nan_to_num(const Array& a, double nan = 0, std::optional<double> posinf = {},
                               std::optional<double> neginf = {});

// --- floating functions ---
/// sin(pi a) / (pi a), 1 at 0. bool and integers give float64.
Array sinc(const Array& a, const UfuncOptions& options = {});
/// The modified Bessel function of the first kind and order 0. bool and integers give float64;
/// throws DtypeError for complex numbers.
Array i0(const Array& a, const UfuncOptions& options = {});
/// The real part (a view) where every imaginary part is smaller than `tol` times the dtype's eps,
/// or than `tol` itself where that is 1 or less; else `a`. Real arrays come back as they are. Waits
/// for the device where `a` is complex.
[[nodiscard]] Array real_if_close(const Array& a, double tol = 100);

/// What unwrap takes for a jump, and along which axis.
struct UnwrapOptions {
  std::optional<double> discont = {};  // half a period where it is left out
  int axis = -1;
  Scalar period = 6.283185307179586477;
};
/// Changes of more than `discont` from an element to the next made the change, by whole periods,
/// that is nearest to 0. Integers stay integers where the period is one.
[[nodiscard]] Array unwrap(const Array& p, const UnwrapOptions& options = {});

// --- bits ---
/// The elements' truths as the bits of uint8, eight to each and the last one filled up with zeros,
/// along `axis` or of the flattened array; the first one is the highest bit, or the lowest for
/// `bitorder` "little". Throws DtypeError unless `a` is bool or of integers, ValueError.
[[nodiscard]] Array packbits(const Array& a, OptionalAxis axis = none,
                             std::string_view bitorder = "big");
/// The reverse, uint8 zeros and ones of a uint8 array: the first `count` of them (filled up with
/// zeros), or all but the last -count where that is negative. Throws DtypeError, ValueError.
[[nodiscard]] Array unpackbits(const Array& a, OptionalAxis axis = none,
                               std::optional<std::int64_t> count = {},
                               std::string_view bitorder = "big");
/// A number's binary digits, with zeros in front up to `width`; negative ones with a minus, or as
/// two's complement of `width` digits. Throws ValueError where the width is too small.
std::string binary_repr(std::int64_t number, std::optional<int> width = {});

// --- NumPy's other names ---
extern const UnaryUfunc abs, conj;                      // absolute, conjugate
extern const UnaryUfunc bitwise_not, bitwise_invert;    // invert
extern const UnaryUfunc rad2deg, deg2rad;               // degrees, radians
extern const UnaryUfunc asin, acos, atan;               // arcsin, arccos, arctan
extern const UnaryUfunc asinh, acosh, atanh;            // arcsinh, arccosh, arctanh
extern const UnaryUfunc fix;                            // trunc, towards zero
extern const BinaryUfunc atan2, pow, true_divide, mod;  // arctan2, power, divide, remainder
extern const BinaryUfunc bitwise_left_shift, bitwise_right_shift;  // left_shift, right_shift
RENSA_AXIS_AND_KEEPDIMS_FORMS(amax, ReduceOptions)                 // max by its other name
RENSA_AXIS_AND_KEEPDIMS_FORMS(amin, ReduceOptions)                 // min by its other name

}  // namespace rensa::xp

#include "rensa/array/end_axis_forms.h"

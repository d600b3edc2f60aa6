// The elementwise routines that are not rows of ops.def: those made of several rows, those with
// arguments of their own, and NumPy's other names. None of them waits for the device.
#pragma once

#include <optional>
#include <utility>

#include "rensa/array/routines.h"

namespace rensa::xp {

// --- rounding ------------------------------------------------------------------------------------
/// To `decimals` digits behind the point (before it where negative), halves to even; complex
/// numbers by their parts. Integers stay integers; bool gives float16, as in NumPy.
Array round(const Array& a, int decimals = 0);
Array round(const Array& a, int decimals, const UfuncOptions& options);
inline Array around(const Array& a, int decimals = 0) { return round(a, decimals); }
/// Towards zero: trunc.
inline Array fix(const Array& a) { return trunc(a); }
inline Array fix(const Array& a, const UfuncOptions& options) { return trunc(a, options); }
/// {the part behind the point, the part before it}, both with a's sign; floats as of exp.
std::pair<Array, Array> modf(const Array& a);
/// {floor_divide, remainder}
std::pair<Array, Array> divmod(const Array& a, const Array& b);
std::pair<Array, Array> divmod(const Array& a, Scalar b);
std::pair<Array, Array> divmod(Scalar a, const Array& b);

// --- bounds --------------------------------------------------------------------------------------
// clip with one bound.
inline Array clip(const Array& a, None, const Array& most) { return minimum(a, most); }
inline Array clip(const Array& a, None, Scalar most) { return minimum(a, most); }
inline Array clip(const Array& a, const Array& least, None) { return maximum(a, least); }
inline Array clip(const Array& a, Scalar least, None) { return maximum(a, least); }

// --- parts of numbers ----------------------------------------------------------------------------
/// A view of the real parts; `a` itself where it is real.
Array real(const Array& a);
/// A view of the imaginary parts; new zeros where `a` is real.
Array imag(const Array& a);
/// The angle of complex numbers, in radians or degrees; 0 or pi of real ones.
Array angle(const Array& a, bool deg = false);
/// Whether the imaginary part is not 0 (is 0), element by element.
Array iscomplex(const Array& a);
Array isreal(const Array& a);
/// Whether the dtype is complex (is not).
bool iscomplexobj(const Array& a);
bool isrealobj(const Array& a);
/// NaN made `nan`, infinities the dtype's greatest and least numbers or what is given; complex
/// numbers by their parts. Integers are copied.
Array nan_to_num(const Array& a, double nan = 0, std::optional<double> posinf = {},
                 std::optional<double> neginf = {});

// --- floating functions --------------------------------------------------------------------------
/// The next number of the result's dtype after `a` towards `b`; exact in the 16-bit types too.
Array nextafter(const Array& a, const Array& b);
Array nextafter(const Array& a, Scalar b);
Array nextafter(Scalar a, const Array& b);
/// a * 2 ** b for integers b.
Array ldexp(const Array& a, const Array& b);
Array ldexp(const Array& a, Scalar b);
/// sin(pi a) / (pi a), 1 at 0. bool and integers give float64.
Array sinc(const Array& a);
/// power in float64 or complex128.
Array float_power(const Array& a, const Array& b);
Array float_power(const Array& a, Scalar b);
Array float_power(Scalar a, const Array& b);

// --- NumPy's other names -------------------------------------------------------------------------
#define RENSA_ALIAS_1(name, of)                       \
  inline Array name(const Array& a) { return of(a); } \
  inline Array name(const Array& a, const UfuncOptions& options) { return of(a, options); }
#define RENSA_ALIAS_2(name, of)                                                                    \
  inline Array name(const Array& a, const Array& b) { return of(a, b); }                           \
  inline Array name(const Array& a, Scalar b) { return of(a, b); }                                 \
  inline Array name(Scalar a, const Array& b) { return of(a, b); }                                 \
  inline Array name(const Array& a, const Array& b, const UfuncOptions& o) { return of(a, b, o); } \
  inline Array name(const Array& a, Scalar b, const UfuncOptions& o) { return of(a, b, o); }       \
  inline Array name(Scalar a, const Array& b, const UfuncOptions& o) { return of(a, b, o); }
RENSA_ALIAS_1(abs, absolute)
RENSA_ALIAS_1(conj, conjugate)
RENSA_ALIAS_1(bitwise_not, invert)
RENSA_ALIAS_1(bitwise_invert, invert)
RENSA_ALIAS_1(rad2deg, degrees)
RENSA_ALIAS_1(deg2rad, radians)
RENSA_ALIAS_1(asin, arcsin)
RENSA_ALIAS_1(acos, arccos)
RENSA_ALIAS_1(atan, arctan)
RENSA_ALIAS_1(asinh, arcsinh)
RENSA_ALIAS_1(acosh, arccosh)
RENSA_ALIAS_1(atanh, arctanh)
RENSA_ALIAS_2(atan2, arctan2)
RENSA_ALIAS_2(pow, power)
RENSA_ALIAS_2(true_divide, divide)
RENSA_ALIAS_2(mod, remainder)
RENSA_ALIAS_2(bitwise_left_shift, left_shift)
RENSA_ALIAS_2(bitwise_right_shift, right_shift)
#undef RENSA_ALIAS_1
#undef RENSA_ALIAS_2
RENSA_DECLARE_REDUCTION(amax)
RENSA_DECLARE_REDUCTION(amin)

}  // namespace rensa::xp

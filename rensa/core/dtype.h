// Element types: their names, sizes and kinds, and NumPy's promotion between them.
#pragma once

#include <complex>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "rensa/core/half.h"

namespace rensa {

/// The type of an array's elements; also by the names below.
enum class Dtype : std::uint8_t {
  bool_,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
};
inline constexpr int kNumDtypes = 15;  // of the dtypes above

inline constexpr Dtype bool_ = Dtype::bool_;            // true or false, in a byte
inline constexpr Dtype int8 = Dtype::int8;              // signed, 8 bits
inline constexpr Dtype int16 = Dtype::int16;            // signed, 16 bits
inline constexpr Dtype int32 = Dtype::int32;            // signed, 32 bits
inline constexpr Dtype int64 = Dtype::int64;            // signed, 64 bits
inline constexpr Dtype uint8 = Dtype::uint8;            // unsigned, 8 bits
inline constexpr Dtype uint16 = Dtype::uint16;          // unsigned, 16 bits
inline constexpr Dtype uint32 = Dtype::uint32;          // unsigned, 32 bits
inline constexpr Dtype uint64 = Dtype::uint64;          // unsigned, 64 bits
inline constexpr Dtype float16 = Dtype::float16;        // IEEE 754 binary16
inline constexpr Dtype bfloat16 = Dtype::bfloat16;      // the upper half of a float32
inline constexpr Dtype float32 = Dtype::float32;        // IEEE 754 binary32
inline constexpr Dtype float64 = Dtype::float64;        // IEEE 754 binary64
inline constexpr Dtype complex64 = Dtype::complex64;    // two float32: real and imaginary
inline constexpr Dtype complex128 = Dtype::complex128;  // two float64: real and imaginary

/// NumPy's letters for what a dtype is: 'b' bool, 'i' signed, 'u' unsigned, 'f' real, 'c' complex.
constexpr char dtype_kind(Dtype d) {
  if (d == Dtype::bool_) return 'b';
  if (d <= Dtype::int64) return 'i';
  if (d <= Dtype::uint64) return 'u';
  if (d <= Dtype::float64) return 'f';
  return 'c';
}

/// Bytes of one element.
constexpr std::int64_t itemsize(Dtype d) {
  constexpr std::int64_t sizes[kNumDtypes] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(d)];
}

/// NumPy's name, "float32" for instance.
std::string_view dtype_name(Dtype d);
std::ostream& operator<<(std::ostream& os, Dtype d);

/// The dtype of a NumPy name ("float32"), one-letter code ("f") or array-protocol string ("<f4").
/// Throws DtypeError for anything else, and for big-endian types.
Dtype parse_dtype(std::string_view text);

/// The smallest dtype that both convert to safely, as numpy.promote_types. bfloat16 stands where
/// float16 does; the two of them meet in float32.
Dtype promote_types(Dtype a, Dtype b);

/// The dtype that several meet in, in whatever order they come, as numpy.result_type: integers meet
/// the widest float each on its own, and not first one another. {uint16, int8, float32} meet in
/// float32.
class DtypeSet {
 public:
  void add(Dtype d) { bits_ |= 1u << static_cast<unsigned>(d); }  // puts `d` into the set
  /// bool of an empty set.
  Dtype promoted() const;

 private:
  unsigned bits_ = 0;
};

/// What NumPy computes floating functions (exp, sqrt, true_divide) of `d` in: floats and complex
/// stay, bool and 8-bit integers give float16, 16-bit float32, wider ones float64.
Dtype floating_dtype(Dtype d);

/// numpy.can_cast(from, to, "same_kind"), which in-place operators and `out=` require.
bool can_cast_same_kind(Dtype from, Dtype to);

namespace detail {
template <class T> struct DtypeOf;
template <> struct DtypeOf<bool> { static constexpr Dtype value = Dtype::bool_; };
template <> struct DtypeOf<std::int8_t> { static constexpr Dtype value = Dtype::int8; };
template <> struct DtypeOf<std::int16_t> { static constexpr Dtype value = Dtype::int16; };
template <> struct DtypeOf<std::int32_t> { static constexpr Dtype value = Dtype::int32; };
template <> struct DtypeOf<long> { static constexpr Dtype value = Dtype::int64; };
template <> struct DtypeOf<long long> { static constexpr Dtype value = Dtype::int64; };
template <> struct DtypeOf<std::uint8_t> { static constexpr Dtype value = Dtype::uint8; };
template <> struct DtypeOf<std::uint16_t> { static constexpr Dtype value = Dtype::uint16; };
template <> struct DtypeOf<std::uint32_t> { static constexpr Dtype value = Dtype::uint32; };
template <> struct DtypeOf<unsigned long> { static constexpr Dtype value = Dtype::uint64; };
template <> struct DtypeOf<unsigned long long> { static constexpr Dtype value = Dtype::uint64; };
template <> struct DtypeOf<half_t> { static constexpr Dtype value = Dtype::float16; };
template <> struct DtypeOf<bfloat16_t> { static constexpr Dtype value = Dtype::bfloat16; };
template <> struct DtypeOf<float> { static constexpr Dtype value = Dtype::float32; };
template <> struct DtypeOf<double> { static constexpr Dtype value = Dtype::float64; };
template <> struct DtypeOf<std::complex<float>> {
  static constexpr Dtype value = Dtype::complex64;
};
template <> struct DtypeOf<std::complex<double>> {
  static constexpr Dtype value = Dtype::complex128;
};
}  // namespace detail

/// The Dtype of a C++ element type.
template <class T> inline constexpr Dtype dtype_of = detail::DtypeOf<T>::value;

/// Calls f(T{}) with the C++ element type of `d`; returns what f returns.
template <class F> decltype(auto) visit_dtype(Dtype d, F&& f) {
  switch (d) {
    case Dtype::bool_: return f(bool{});
    case Dtype::int8: return f(std::int8_t{});
    case Dtype::int16: return f(std::int16_t{});
    case Dtype::int32: return f(std::int32_t{});
    case Dtype::int64: return f(std::int64_t{});
    case Dtype::uint8: return f(std::uint8_t{});
    case Dtype::uint16: return f(std::uint16_t{});
    case Dtype::uint32: return f(std::uint32_t{});
    case Dtype::uint64: return f(std::uint64_t{});
    case Dtype::float16: return f(half_t{});
    case Dtype::bfloat16: return f(bfloat16_t{});
    case Dtype::float32: return f(float{});
    case Dtype::float64: return f(double{});
    case Dtype::complex64: return f(std::complex<float>{});
    default: return f(std::complex<double>{});
  }
}

}  // namespace rensa

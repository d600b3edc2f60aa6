// Scalar: a number in an expression with an array, weak in NumPy 2's sense: it takes the array's
// dtype unless its kind is a higher one.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>

#include "rensa/core/dtype.h"

namespace rensa {

class Scalar {
 public:
  constexpr Scalar() = default;
  constexpr Scalar(bool v) : kind_('b'), int_(v) {}
  template <std::signed_integral T> constexpr Scalar(T v) : kind_('i'), int_(v) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) constexpr Scalar(T v)
      : kind_('u'), int_(static_cast<std::int64_t>(v)) {}
  template <std::floating_point T> constexpr Scalar(T v) : kind_('f'), real_(v) {}
  Scalar(half_t v) : kind_('f'), real_(static_cast<float>(v)) {}
  Scalar(bfloat16_t v) : kind_('f'), real_(static_cast<float>(v)) {}
  template <class T>
  constexpr Scalar(std::complex<T> v) : kind_('c'), real_(v.real()), imag_(v.imag()) {}

  /// 'b', 'i', 'u', 'f' or 'c'.
  constexpr char kind() const { return kind_; }
  /// A bool or an integer.
  constexpr bool is_integral() const { return kind_ == 'b' || kind_ == 'i' || kind_ == 'u'; }

  /// The real part, rounded to double.
  constexpr double real() const {
    if (kind_ == 'u') return static_cast<double>(static_cast<std::uint64_t>(int_));
    return is_integral() ? static_cast<double>(int_) : real_;
  }
  constexpr double imag() const { return imag_; }  // 0 but for complex numbers
  /// Cut off towards 0.
  constexpr std::int64_t integer() const {
    return is_integral() ? int_ : static_cast<std::int64_t>(real_);
  }
  /// The value as an element of type T.
  template <class T> constexpr T as() const {
    if constexpr (std::same_as<T, bool>) {
      return is_integral() ? int_ != 0 : (real_ != 0 || imag_ != 0);
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(integer());
    } else if constexpr (requires { typename T::value_type; }) {
      return T(static_cast<typename T::value_type>(real()),
               static_cast<typename T::value_type>(imag()));
    } else {
      return static_cast<T>(real());
    }
  }

  /// The dtype of an array made of this number alone: bool, int64, uint64, float64 or complex128.
  Dtype default_dtype() const;
  /// The dtype that this scalar and an array of `array` meet in (NEP 50).
  Dtype result_type(Dtype array) const;

 private:
  char kind_ = 'i';
  std::int64_t int_ = 0;
  double real_ = 0, imag_ = 0;
};

}  // namespace rensa

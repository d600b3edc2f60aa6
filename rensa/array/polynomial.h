// Polynomials by their coefficients, the highest power first.
#pragma once

#include <optional>
#include <string>

#include "rensa/array/array.h"

namespace rensa::xp {

/// p[0] * x**(n-1) + ... + p[n-1] by Horner's rule, in the common dtype.
Array polyval(const Array& p, const Array& x);
Array polyadd(const Array& a, const Array& b);
Array polysub(const Array& a, const Array& b);
/// Leading zeros of the operands are dropped first, for which it waits for the device.
Array polymul(const Array& a, const Array& b);
/// The m-th derivative, and the m-th integral with the constant 0.
Array polyder(const Array& p, int m = 1);
Array polyint(const Array& p, int m = 1);

/// The places where p is 0, always complex (their dtype would else depend on the values), the
/// eigenvalues of a matrix made of the coefficients. Worked out on the host: waits for the device.
Array roots(const Array& p);
/// The polynomial of degree `degree` nearest to the points (x, y) in the sum of squares; y is (m,)
/// or (m, k), of k polynomials. `w` weights the points' distances. rcond as in linalg::lstsq, m
/// times epsilon when left out. Throws ShapeError, ValueError. Waits for the device.
Array polyfit(const Array& x, const Array& y, int degree, std::optional<double> rcond = {},
              const Array& w = {});

/// numpy.poly1d: a polynomial as a value. Making one drops leading zeros and waits for the device.
class poly1d {
 public:
  /// Of a 0-d or 1-d array of coefficients; none are the polynomial 0. Throws ShapeError.
  explicit poly1d(const Array& coefficients);

  const Array& coeffs() const { return coefficients_; }
  const Array& c() const { return coefficients_; }
  int order() const { return static_cast<int>(coefficients_.size()) - 1; }
  /// The coefficient of x**power, 0 for a power that is not there: a 0-d array.
  Array operator[](int power) const;
  Array operator()(const Array& x) const { return polyval(coefficients_, x); }
  poly1d operator()(const poly1d& x) const;
  Array roots() const { return xp::roots(coefficients_); }
  Array r() const { return roots(); }
  poly1d deriv(int m = 1) const { return poly1d(polyder(coefficients_, m)); }
  poly1d integ(int m = 1) const { return poly1d(polyint(coefficients_, m)); }

  friend poly1d operator+(const poly1d& a, const poly1d& b) {
    return poly1d(polyadd(a.coefficients_, b.coefficients_));
  }
  friend poly1d operator-(const poly1d& a, const poly1d& b) {
    return poly1d(polysub(a.coefficients_, b.coefficients_));
  }
  friend poly1d operator*(const poly1d& a, const poly1d& b) {
    return poly1d(polymul(a.coefficients_, b.coefficients_));
  }
  friend poly1d operator-(const poly1d& a) { return poly1d(-a.coefficients_); }
  /// Waits for the device.
  friend bool operator==(const poly1d& a, const poly1d& b);

 private:
  Array coefficients_;
};

}  // namespace rensa::xp

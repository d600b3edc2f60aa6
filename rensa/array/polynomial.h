// Polynomials by their coefficients, the highest power first.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::xp {

/// p[0] * x**(n-1) + ... + p[n-1] by Horner's rule, in the common dtype.
[[nodiscard]] Array polyval(const Array& p, const Array& x);
[[nodiscard]] Array polyadd(const Array& a, const Array& b);  // the coefficients of a + b
[[nodiscard]] Array polysub(const Array& a, const Array& b);  // the coefficients of a - b
/// Leading zeros of the operands are dropped first, for which it waits for the device.
[[nodiscard]] Array polymul(const Array& a, const Array& b);
/// The m-th derivative, and the m-th integral with the constant 0.
[[nodiscard]] Array polyder(const Array& p, int m = 1);
[[nodiscard]] Array polyint(const Array& p, int m = 1);
/// With constants of integration: one for each integral, or one for all.
[[nodiscard]] Array polyint(const Array& p, int m, const std::vector<Scalar>& k);
/// The coefficients of the polynomial with the leading coefficient 1 that is 0 at the elements of a
/// 1-d array, or at the eigenvalues of a square matrix, which makes it complex.
[[nodiscard]] Array poly(const Array& zeros);

/// The places where p is 0, always complex (their dtype would else depend on the values), the
/// eigenvalues of a matrix made of the coefficients. Worked out on the host: waits for the device.
[[nodiscard]] Array roots(const Array& p);
/// The polynomial of degree `degree` nearest to the points (x, y) in the sum of squares; y is (m,)
/// or (m, k), of k polynomials. `w` weights the points' distances. rcond as in linalg::lstsq, m
/// times epsilon when left out. Throws ShapeError, ValueError. Waits for the device.
[[nodiscard]] Array polyfit(const Array& x, const Array& y, int degree,
                            std::optional<double> rcond = {}, const Array& w = {});

/// numpy.poly1d: a polynomial as a value. Making one drops leading zeros and waits for the device.
class poly1d {
 public:
  /// Of a 0-d or 1-d array of coefficients; none are the polynomial 0. Throws ShapeError.
  explicit poly1d(const Array& coefficients);

  const Array& coeffs() const { return coefficients_; }  // the highest power first
  const Array& c() const { return coefficients_; }       // the same
  int order() const { return static_cast<int>(coefficients_.size()) - 1; }  // the highest power
  /// The coefficient of x**power, 0 for a power that is not there: a 0-d array.
  [[nodiscard]] Array operator[](int power) const;
  /// The polynomial at x, or of another polynomial.
  [[nodiscard]] Array operator()(const Array& x) const { return polyval(coefficients_, x); }
  poly1d operator()(const poly1d& x) const;
  [[nodiscard]] Array roots() const { return xp::roots(coefficients_); }  // as xp::roots
  [[nodiscard]] Array r() const { return roots(); }                       // the same
  /// The m-th derivative.
  poly1d deriv(int m = 1) const { return poly1d(polyder(coefficients_, m)); }
  /// The m-th integral, its constants 0.
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

// numpy.polynomial: coefficients with the lowest power first. Those that cut zeros off wait for the
// device.
namespace polynomial {
/// The powers 0 to `deg` of x along a last axis: (..., deg + 1). Integers give float64.
[[nodiscard]] Array polyvander(const Array& x, int deg);
/// The matrix (n, n) whose eigenvalues are where the polynomial of degree n is 0. Throws ValueError
/// for a polynomial of no degree.
[[nodiscard]] Array polycompanion(const Array& c);
/// The product of x - r over the first axis of `r`, the places where the polynomial is 0; with
/// `tensor` for every column of `r` and every element of x, else the two broadcast.
[[nodiscard]] Array polyvalfromroots(const Array& x, const Array& r, bool tensor = true);
/// 1-d arrays of one floating dtype without trailing zeros (with them unless `trim`).
[[nodiscard]] std::vector<Array> as_series(std::span<const Array> arrays, bool trim = true);
[[nodiscard]] std::vector<Array> as_series(std::initializer_list<Array> arrays, bool trim = true);
/// Without the zeros at the end, but for one element.
[[nodiscard]] Array trimseq(const Array& seq);
/// Without the coefficients at the end of a size up to `tol`; 0 where there is nothing else.
[[nodiscard]] Array trimcoef(const Array& c, double tol = 0);
}  // namespace polynomial

}  // namespace rensa::xp

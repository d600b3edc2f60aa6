// Special functions, elementwise, with gradients of any order.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// 1 - erf(x), exact where that is near 0.
[[nodiscard]] Variable erfc(const Variable& x);
/// exp(x * x) * erfc(x).
[[nodiscard]] Variable erfcx(const Variable& x);
/// The inverses of erf and erfc: NaN for what these never give.
[[nodiscard]] Variable erfinv(const Variable& x);
[[nodiscard]] Variable erfcinv(const Variable& x);
/// The share of the normal distribution below x: (1 + erf(x / sqrt(2))) / 2.
[[nodiscard]] Variable ndtr(const Variable& x);
/// Its inverse; NaN outside of [0, 1].
[[nodiscard]] Variable ndtri(const Variable& x);
/// Its logarithm, exact for negative x too.
[[nodiscard]] Variable log_ndtr(const Variable& x);
/// log |gamma(x)|.
[[nodiscard]] Variable lgamma(const Variable& x);
/// The derivative of lgamma.
[[nodiscard]] Variable digamma(const Variable& x);
/// The n-th derivative of digamma. Throws ValueError for n < 0.
[[nodiscard]] Variable polygamma(int n, const Variable& x);
/// Hurwitz's zeta function, the sum of (q + k)^-s over k = 0, 1, ...; s > 1 (NaN else).
[[nodiscard]] Variable zeta(double s, const Variable& q);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

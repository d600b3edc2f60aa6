// Special functions: rows of operations/pointwise/special.def.
#include "rensa/functions/special_functions.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/differentiable_rows.h"

namespace rensa::functions {

Variable erfc(const Variable& x) { return differentiable(rows::erfc, {x})[0]; }
Variable erfcx(const Variable& x) { return differentiable(rows::erfcx, {x})[0]; }
Variable erfinv(const Variable& x) { return differentiable(rows::erfinv, {x})[0]; }
Variable erfcinv(const Variable& x) { return differentiable(rows::erfcinv, {x})[0]; }
Variable ndtr(const Variable& x) { return differentiable(rows::ndtr, {x})[0]; }
Variable ndtri(const Variable& x) { return differentiable(rows::ndtri, {x})[0]; }
Variable log_ndtr(const Variable& x) { return differentiable(rows::log_ndtr, {x})[0]; }
Variable lgamma(const Variable& x) { return differentiable(rows::lgamma, {x})[0]; }
Variable digamma(const Variable& x) { return differentiable(rows::digamma, {x})[0]; }

Variable polygamma(int n, const Variable& x) {
  if (n < 0) throw ValueError(fmt::format("polygamma: n is {}, which has to be 0 or more", n));
  return differentiable(rows::polygamma, {x}, {Scalar(n)})[0];
}

Variable zeta(double s, const Variable& q) {
  return differentiable(rows::zeta, {q}, {Scalar(s)})[0];
}

}  // namespace rensa::functions

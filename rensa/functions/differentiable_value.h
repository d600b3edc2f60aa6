// What the text of a gradient in operations/pointwise/pointwise.def is compiled for besides
// numbers: variables, so that gradients are differentiable functions themselves. It has what that
// text uses.
#pragma once

#include <cmath>
#include <complex>
#include <utility>

// clang-format off
#include "rensa/core/functors.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/special_functions.h"
// clang-format on

namespace rensa {

namespace functions {

/// A variable, or a number.
class DifferentiableValue {
 public:
  DifferentiableValue() = default;
  explicit DifferentiableValue(Scalar number) : number_(number) {}
  explicit DifferentiableValue(Variable variable) : variable_(std::move(variable)) {}

  bool is_number() const { return !variable_.defined(); }
  const Scalar& number() const { return number_; }
  const Variable& variable() const { return variable_; }
  /// As a variable that stands beside `other`.
  Variable beside(const Variable& other) const {
    if (!is_number()) return variable_;
    return constant(xp::full({}, number_, other.dtype(), other.device()));
  }

 private:
  Variable variable_;
  Scalar number_;
};

/// What a comparison gives: no gradient goes through it.
class Condition {
 public:
  explicit Condition(Array truth) : truth_(std::move(truth)) {}
  const Array& truth() const { return truth_; }
  friend Condition operator&(const Condition& a, const Condition& b) {
    return Condition(a.truth_ & b.truth_);
  }

 private:
  Array truth_;
};

template <class Operation>
DifferentiableValue of_numbers(const Scalar& a, const Scalar& b, Operation operation) {
  if (a.kind() != 'c' && b.kind() != 'c') {
    return DifferentiableValue(operation(a.real(), b.real()));
  }
  using Complex = std::complex<double>;
  return DifferentiableValue(operation(a.as<Complex>(), b.as<Complex>()));
}
#define RENSA_VALUE_ARITHMETIC(symbol)                                                      \
  inline DifferentiableValue operator symbol(const DifferentiableValue& a,                  \
                                             const DifferentiableValue& b) {                \
    if (a.is_number() && b.is_number()) {                                                   \
      return of_numbers(a.number(), b.number(), [](auto x, auto y) { return x symbol y; }); \
    }                                                                                       \
    if (a.is_number()) return DifferentiableValue(a.number() symbol b.variable());          \
    if (b.is_number()) return DifferentiableValue(a.variable() symbol b.number());          \
    return DifferentiableValue(a.variable() symbol b.variable());                           \
  }
RENSA_VALUE_ARITHMETIC(+)
RENSA_VALUE_ARITHMETIC(-)
RENSA_VALUE_ARITHMETIC(*)
RENSA_VALUE_ARITHMETIC(/)
#undef RENSA_VALUE_ARITHMETIC
// One side at least is a variable.
#define RENSA_VALUE_COMPARISON(symbol)                                                           \
  inline Condition operator symbol(const DifferentiableValue& a, const DifferentiableValue& b) { \
    if (a.is_number()) return Condition(a.number() symbol b.variable());                         \
    if (b.is_number()) return Condition(a.variable() symbol b.number());                         \
    return Condition(a.variable() symbol b.variable());                                          \
  }
RENSA_VALUE_COMPARISON(<)
RENSA_VALUE_COMPARISON(<=)
#undef RENSA_VALUE_COMPARISON
inline DifferentiableValue operator-(const DifferentiableValue& a) {
  return a.is_number() ? DifferentiableValue(-1.0) * a : DifferentiableValue(-a.variable());
}

}  // namespace functions

namespace m {

#define RENSA_VALUE_FUNCTION(name, function)                                            \
  inline functions::DifferentiableValue name(const functions::DifferentiableValue& a) { \
    return functions::DifferentiableValue(functions::function(a.variable()));           \
  }
RENSA_VALUE_FUNCTION(exp, exp)
RENSA_VALUE_FUNCTION(sqrt, sqrt)
RENSA_VALUE_FUNCTION(sinh, sinh)
RENSA_VALUE_FUNCTION(cosh, cosh)
RENSA_VALUE_FUNCTION(erfcx, erfcx)
RENSA_VALUE_FUNCTION(digamma, digamma)
RENSA_VALUE_FUNCTION(sin, sin)
RENSA_VALUE_FUNCTION(cos, cos)
RENSA_VALUE_FUNCTION(erf, erf)
RENSA_VALUE_FUNCTION(tanh, tanh)
RENSA_VALUE_FUNCTION(sigmoid, sigmoid)
RENSA_VALUE_FUNCTION(abs, absolute)
#undef RENSA_VALUE_FUNCTION
inline functions::DifferentiableValue negative(const functions::DifferentiableValue& a) {
  return -a;
}
/// No gradient goes through it.
functions::DifferentiableValue sign(const functions::DifferentiableValue& a);
/// No gradient goes through it.
functions::DifferentiableValue trunc(const functions::DifferentiableValue& a);
/// Of a number n and a variable.
inline functions::DifferentiableValue polygamma(const functions::DifferentiableValue& n,
                                                const functions::DifferentiableValue& a) {
  return functions::DifferentiableValue(
      functions::polygamma(static_cast<int>(n.number().real()), a.variable()));
}
inline functions::DifferentiableValue trigamma(const functions::DifferentiableValue& a) {
  return functions::DifferentiableValue(functions::polygamma(1, a.variable()));
}
/// Of a number s and a variable.
inline functions::DifferentiableValue zeta(const functions::DifferentiableValue& s,
                                           const functions::DifferentiableValue& q) {
  return functions::DifferentiableValue(functions::zeta(s.number().real(), q.variable()));
}
/// To the power of a number.
inline functions::DifferentiableValue pow(const functions::DifferentiableValue& a,
                                          const functions::DifferentiableValue& b) {
  return functions::DifferentiableValue(functions::pow(a.variable(), b.number().real()));
}
inline functions::DifferentiableValue minimum(const functions::DifferentiableValue& a,
                                              const functions::DifferentiableValue& b) {
  const Variable& like = a.is_number() ? b.variable() : a.variable();
  return functions::DifferentiableValue(functions::minimum(a.beside(like), b.beside(like)));
}
/// One side at least is a variable.
inline functions::DifferentiableValue select(const functions::Condition& condition,
                                             const functions::DifferentiableValue& a,
                                             const functions::DifferentiableValue& b) {
  const Variable& like = a.is_number() ? b.variable() : a.variable();
  return functions::DifferentiableValue(
      functions::where(condition.truth(), a.beside(like), b.beside(like)));
}

}  // namespace m

}  // namespace rensa

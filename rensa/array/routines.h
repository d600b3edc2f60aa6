// The routines of namespace xp, NumPy's names; each runs on the device of its operands.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/creation.h"
#include "rensa/array/manipulation.h"
#include "rensa/core/ufunc.h"

namespace rensa::xp {

// --- elementwise: one function a row of ops.def (array/elementwise.cc) ---------------------------
#define RENSA_DECLARE_1(name) Array name(const Array& a);
#define RENSA_DECLARE_2(name)                 \
  Array name(const Array& a, const Array& b); \
  Array name(const Array& a, Scalar b);       \
  Array name(Scalar a, const Array& b);
#define RENSA_DECLARE_3(name)                                 \
  Array name(const Array& a, const Array& b, const Array& c); \
  Array name(const Array& a, const Array& b, Scalar c);       \
  Array name(const Array& a, Scalar b, const Array& c);       \
  Array name(const Array& a, Scalar b, Scalar c);
#define RENSA_UFUNC(name, inputs, rule, expression) RENSA_DECLARE_##inputs(name)
#define RENSA_KERNEL(name, inputs, rule, expression)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_KERNEL
#undef RENSA_DECLARE_1
#undef RENSA_DECLARE_2
#undef RENSA_DECLARE_3
inline Array abs(const Array& a) { return absolute(a); }
inline Array invert(const Array& a) { return ~a; }

/// An operand of `elementwise`: an array or a number.
struct ElementwiseArgument {
  ElementwiseArgument(const Array& a) : array(&a) {}
  template <std::convertible_to<Scalar> T> ElementwiseArgument(T number) : scalar(number) {}
  const Array* array = nullptr;
  Scalar scalar;
};
/// Any row of ops.def, internal ones too: broadcasts, promotes, allocates (or writes `out`), runs.
Array elementwise(Ufunc ufunc, std::initializer_list<ElementwiseArgument> arguments,
                  const Array* out = nullptr);


// --- reductions (array/reduce.cc)
// ------------------------------------------------------------------
Array sum(const Array& a, Axes axis = {}, bool keepdims = false);
Array prod(const Array& a, Axes axis = {}, bool keepdims = false);
Array mean(const Array& a, Axes axis = {}, bool keepdims = false);
Array max(const Array& a, Axes axis = {}, bool keepdims = false);
Array min(const Array& a, Axes axis = {}, bool keepdims = false);
Array any(const Array& a, Axes axis = {}, bool keepdims = false);
Array all(const Array& a, Axes axis = {}, bool keepdims = false);
Array argmax(const Array& a);
Array argmax(const Array& a, int axis, bool keepdims = false);
Array argmin(const Array& a);
Array argmin(const Array& a, int axis, bool keepdims = false);
/// Waits for the device.
bool array_equal(const Array& a, const Array& b);
bool allclose(const Array& a, const Array& b, double rtol = 1e-5, double atol = 1e-8);

// --- products (array/linalg.cc)
// ---------------------------------------------------------------------
/// NumPy's matmul: 1-d operands are promoted, leading axes broadcast. Throws ShapeError,
/// DtypeError.
Array matmul(const Array& a, const Array& b);
Array dot(const Array& a, const Array& b);
/// x @ w.T + bias for x (n, k), w (m, k), bias (m,) or undefined; the products of functions/linear.
Array linear(const Array& x, const Array& w, const Array& bias);

}  // namespace rensa::xp

// Reductions, and the comparisons of whole arrays made of them.
#include <fmt/format.h>

#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/reduction_functors.h"
#include "rensa/device/launcher.h"
#include "rensa/device/operations.h"

namespace rensa {

namespace {

// What a reduction of no elements gives: what its row makes of the identity. Throws ValueError for
// those that have no answer.
Scalar value_of_nothing(Reduction reduction, const Array& a) {
  const ReductionInfo& info = reduction_info(reduction);
  if (info.rule == ReductionRule::order || info.rule == ReductionRule::position) {
    throw ValueError(fmt::format("{}: {} is empty along a reduced axis, which has no {}", info.name,
                                 a.view().describe(), info.name));
  }
  switch (reduction) {
#define RENSA_REDUCTION(name, ...) \
  case Reduction::name:            \
    return red::name::post(red::name::identity<double>(), 0);
#include "rensa/core/reductions.def"
#undef RENSA_REDUCTION
    default: return 0;  // argmax and argmin, which have thrown
  }
}

Shape without_axes(const Shape& shape, unsigned axes) {
  Shape result;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!(axes >> i & 1)) result.push_back(shape[i]);
  }
  return result;
}

Array reduce(Reduction reduction, const Array& a, Axes axis, bool keepdims) {
  const char* name = reduction_info(reduction).name;
  detail::check_defined(name, a);
  unsigned axes = axis.mask(name, a.ndim());
  Array out = detail::reduce_axes(reduction, a, axes);
  return keepdims ? out : out.reshape(without_axes(out.shape(), axes));
}

Array position(Reduction reduction, const Array& a, int axis, bool keepdims) {
  return reduce(reduction, a, axis, keepdims);
}

Array position_of_all(Reduction reduction, const Array& a) {
  detail::check_defined(reduction_info(reduction).name, a);
  return reduce(reduction, a.ravel(), 0, false);
}

}  // namespace

Array detail::reduce_axes(Reduction reduction, const Array& a, unsigned axes) {
  const char* name = reduction_info(reduction).name;
  UfuncTypes types = reduction_types(reduction, a.dtype());
  Shape shape = a.shape();
  for (int i = 0; i < a.ndim(); ++i) {
    if (axes >> i & 1) shape[i] = 1;
  }
  Array out = new_array(shape, types.output, a.device());
  if (out.size() == 0) return out;
  if (a.size() == 0) {
    fill_elements(name, out, value_of_nothing(reduction, a));
    return out;
  }
  Reduce op(name, reduction);
  op.axes = axes;
  op.compute = types.compute;
  op.in = a.operand();
  op.out = out.operand();
  launch(op);
  return out;
}

namespace xp {

#define RENSA_REDUCE(name)                               \
  Array name(const Array& a, Axes axis, bool keepdims) { \
    return reduce(Reduction::name, a, axis, keepdims);   \
  }
RENSA_REDUCE(sum)
RENSA_REDUCE(prod)
RENSA_REDUCE(mean)
RENSA_REDUCE(max)
RENSA_REDUCE(min)
RENSA_REDUCE(any)
RENSA_REDUCE(all)
#undef RENSA_REDUCE

Array argmax(const Array& a) { return position_of_all(Reduction::argmax, a); }
Array argmin(const Array& a) { return position_of_all(Reduction::argmin, a); }
Array argmax(const Array& a, int axis, bool keepdims) {
  return position(Reduction::argmax, a, axis, keepdims);
}
Array argmin(const Array& a, int axis, bool keepdims) {
  return position(Reduction::argmin, a, axis, keepdims);
}

bool array_equal(const Array& a, const Array& b) {
  rensa::detail::check_defined("array_equal", a);
  rensa::detail::check_defined("array_equal", b);
  return a.shape() == b.shape() && all(equal(a, b)).item<bool>();
}

bool allclose(const Array& a, const Array& b, double rtol, double atol) {
  Dtype wide = promote_types(promote_types(a.dtype(), b.dtype()), float64);
  Array x = a.astype(wide, false), y = b.astype(wide, false);
  Array size = absolute(y);
  Array close = less_equal(absolute(x - y), size * rtol + atol);
  return all(equal(x, y) | (close & isfinite(size))).item<bool>();
}

}  // namespace xp

#define RENSA_REDUCE_METHOD(name)                          \
  Array Array::name(Axes axis, bool keepdims) const {      \
    return reduce(Reduction::name, *this, axis, keepdims); \
  }
RENSA_REDUCE_METHOD(sum)
RENSA_REDUCE_METHOD(prod)
RENSA_REDUCE_METHOD(mean)
RENSA_REDUCE_METHOD(max)
RENSA_REDUCE_METHOD(min)
RENSA_REDUCE_METHOD(any)
RENSA_REDUCE_METHOD(all)
#undef RENSA_REDUCE_METHOD

Array Array::argmax() const { return xp::argmax(*this); }
Array Array::argmin() const { return xp::argmin(*this); }
Array Array::argmax(int axis, bool keepdims) const { return xp::argmax(*this, axis, keepdims); }
Array Array::argmin(int axis, bool keepdims) const { return xp::argmin(*this, axis, keepdims); }

}  // namespace rensa

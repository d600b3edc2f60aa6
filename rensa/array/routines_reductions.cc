// Reductions, and the comparisons of whole arrays made of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/reduction_rows.h"
#include "rensa/device/launcher.h"
#include "rensa/device/tracer.h"
#include "rensa/operations/compare/compare.h"
#include "rensa/operations/reduce/reduce.h"

namespace rensa {

namespace {

// What a reduction of no elements in `compute` gives: what its row makes of the identity. Throws
// ValueError for those that have no answer.
Scalar value_of_nothing(Reduction reduction, const Array& a, Dtype compute) {
  const ReductionInfo& info = reduction_info(reduction);
  if (info.rule == ReductionRule::order || info.rule == ReductionRule::nan_order ||
      info.rule == ReductionRule::position) {
    throw ValueError(fmt::format("{}: {} is empty along a reduced axis, which has no {}", info.name,
                                 a.view().describe(), info.name));
  }
  bool complex_mean = info.rule == ReductionRule::mean && dtype_kind(compute) == 'c';
  if (complex_mean || info.rule == ReductionRule::nan_mean) {
    double nan = std::nan("");
    return dtype_kind(compute) == 'c' ? Scalar(std::complex<double>(nan, nan)) : Scalar(nan);
  }
  return info.of_nothing();
}

Shape without_axes(const Shape& shape, unsigned axes) {
  Shape result;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!(axes >> i & 1)) result.push_back(shape[i]);
  }
  return result;
}

bool is_complex(const Array& a) { return dtype_kind(a.dtype()) == 'c'; }
bool is_integral(Dtype dtype) { return dtype_kind(dtype) != 'f' && dtype_kind(dtype) != 'c'; }

// The reduction that does the work: only floats have NaN to leave out.
Reduction row_for(Reduction reduction, const Array& a) {
  if (!is_integral(a.dtype())) return reduction;
  if (reduction == reduction::nansum) return reduction::sum;
  if (reduction == reduction::nanprod) return reduction::prod;
  if (reduction == reduction::nanmax) return reduction::max;
  if (reduction == reduction::nanmin) return reduction::min;
  return reduction;
}

void run_reduction(const char* name, Reduction reduction, const Array& a, unsigned axes,
                   Dtype compute, const Array& out) {
  for (int i = 0; i < a.ndim(); ++i) {
    if (!(axes >> i & 1) || a.shape()[i] != 0) continue;
    detail::fill_elements(name, out, value_of_nothing(reduction, a, compute));
    return;
  }
  if (out.size() == 0) return;
  operations::Reduce op(name, reduction);
  op.axes = axes;
  op.compute = compute;
  op.in = a.operand();
  op.out = out.operand();
  launch(op);
}

Shape with_ones(Shape shape, unsigned axes) {
  for (int i = 0; i < shape.ndim(); ++i) {
    if (axes >> i & 1) shape[i] = 1;
  }
  return shape;
}

Array reduce(Reduction reduction, const Array& a, Axes axis, bool keepdims) {
  const char* name = reduction_info(reduction).name;
  detail::check_defined(name, a);
  unsigned axes = axis.mask(name, a.ndim());
  Array out = detail::reduce_axes(reduction, a, axes);
  return keepdims ? out : out.reshape(without_axes(out.shape(), axes));
}

// --- with options ---

bool is_order(ReductionRule rule) {
  return rule == ReductionRule::order || rule == ReductionRule::nan_order;
}

// `out` with the reduced axes as extents of 1.
Array expanded_out(const char* name, const Array& a, unsigned axes, bool keepdims,
                   const Array& out) {
  detail::check_destination(name, a, out);
  Shape kept = with_ones(a.shape(), axes), want = keepdims ? kept : without_axes(kept, axes);
  if (out.shape() != want) {
    throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", name,
                                 want.str(), out.view().describe()));
  }
  if (keepdims) return out;
  Shape strides;
  for (int i = 0, j = 0; i < a.ndim(); ++i) {
    strides.push_back(axes >> i & 1 ? 0 : out.strides()[j++]);
  }
  return detail::new_view(out, 0, kept, strides);
}

// What a masked element counts as.
Scalar neutral_of(const char* name, Reduction reduction, const std::optional<Scalar>& initial) {
  if (reduction == reduction::sum || reduction == reduction::nansum) return 0;
  if (reduction == reduction::prod || reduction == reduction::nanprod) return 1;
  if (reduction == reduction::any) return false;
  if (reduction == reduction::all) return true;
  if (!initial) {
    throw ValueError(
        fmt::format("{}: has no answer where the mask leaves nothing; give `initial`", name));
  }
  return *initial;
}

Array masked(const char* name, Reduction reduction, const Array& a,
             const xp::ReduceOptions& options) {
  detail::check_mask(name, *options.where, a);
  Scalar neutral = neutral_of(name, reduction, options.initial);
  return detail::elementwise(name, ufunc::where, {*options.where, a, neutral}, nullptr);
}

// out = initial joined with out.
void start_with(const char* name, Reduction reduction, Scalar initial, const Array& out) {
  static const std::pair<Reduction, Ufunc> joins[] = {
      {reduction::prod, ufunc::multiply},  {reduction::nanprod, ufunc::multiply},
      {reduction::max, ufunc::maximum},    {reduction::nanmax, ufunc::fmax},
      {reduction::min, ufunc::minimum},    {reduction::nanmin, ufunc::fmin},
      {reduction::any, ufunc::logical_or}, {reduction::all, ufunc::logical_and}};
  Ufunc join = ufunc::add;
  for (const auto& [row, other] : joins) {
    if (row == reduction) join = other;
  }
  detail::elementwise(name, join, {out, initial}, &out);
}

// What a reduction whose results go into `out` computes in: the dtype in which its elements and
// those of `out` meet, unless they are integers that meet in floats.
UfuncTypes types_into(Reduction reduction, const Array& a, const Array& out) {
  UfuncTypes types = reduction_types(reduction, a.dtype());
  ReductionRule rule = reduction_info(reduction).rule;
  bool mean_of_integers = rule == ReductionRule::mean && is_integral(a.dtype());
  if (rule == ReductionRule::truth || mean_of_integers) return types;
  Dtype common = promote_types(a.dtype(), out.dtype());
  if (is_integral(out.dtype()) && !is_integral(common)) return types;
  if (dtype_kind(common) == 'c' && !rule_takes(rule, compute_type(common))) {
    common = common == complex64 ? float32 : float64;  // real elements have an order
  }
  return {common, common};
}

UfuncTypes types_of(const char* name, Reduction reduction, const Array& a,
                    const xp::ReduceOptions& options) {
  const std::optional<Dtype>& dtype = options.dtype;
  if (!dtype) {
    if (!options.out) return reduction_types(reduction, a.dtype());
    detail::check_same_kind(name, reduction_types(reduction, a.dtype()).output, *options.out);
    return types_into(reduction, a, *options.out);
  }
  ReductionRule rule = reduction_info(reduction).rule;
  bool adds =
      rule == ReductionRule::sum || rule == ReductionRule::mean || rule == ReductionRule::nan_sum;
  if (!adds || !rule_takes(rule, compute_type(*dtype))) {
    throw DtypeError(fmt::format("{}: is not computed in {}", name, dtype_name(*dtype)));
  }
  if (options.out) detail::check_same_kind(name, *dtype, *options.out);
  return {*dtype, *dtype};
}

// Whether kernels compute in `dtype` itself and not in a wider one.
bool is_carried(Dtype dtype) {
  return itemsize(dtype) == 8 || dtype == float32 || dtype == complex128;
}

// `a` as elements of `dtype`, which a reduction in `dtype` is one of; kernels that compute in a
// wider type than it come to the same, but for truth and 16-bit floats.
Array rounded_elements(const Array& a, const std::optional<Dtype>& dtype) {
  if (!dtype || a.dtype() == *dtype) return a;
  bool narrow = itemsize(*dtype) == 2 && dtype_kind(*dtype) == 'f';
  return narrow || *dtype == bool_ ? a.astype(*dtype) : a;
}

// `initial` as an element of `dtype`. Throws DtypeError for a complex number where `dtype` is real,
// ValueError for one that no element of `dtype` can hold.
std::optional<Scalar> typed_initial(const char* name, const std::optional<Scalar>& initial,
                                    Dtype dtype) {
  if (!initial) return {};
  if (initial->kind() == 'c' && dtype_kind(dtype) != 'c') {
    throw DtypeError(fmt::format("{}: starts with a complex number, which {} does not hold", name,
                                 dtype_name(dtype)));
  }
  if (dtype == bool_) return initial->as<bool>();
  if (!is_integral(dtype)) return initial;
  Scalar whole = *initial;
  if (!whole.is_integral()) {
    double value = std::trunc(whole.real());
    bool fits = value >= -0x1p63 && value < 0x1p64;  // not NaN either
    if (!fits) {
      throw ValueError(fmt::format("{}: starts with {}, which {} does not hold", name, value,
                                   dtype_name(dtype)));
    }
    whole = value < 0 ? Scalar(static_cast<std::int64_t>(value))
                      : Scalar(static_cast<std::uint64_t>(value));
  }
  detail::check_in_range(name, whole, dtype);
  return whole;
}

Array mean_by_division(const Array& a, xp::ReduceOptions options);

Array reduce(Reduction asked, const Array& a, xp::ReduceOptions options) {
  if (!options.dtype && !options.out && !options.initial && !options.where) {
    return reduce(asked, a, options.axis, options.keepdims);
  }
  const char* name = reduction_info(asked).name;
  detail::check_defined(name, a);
  unsigned axes = options.axis.mask(name, a.ndim());
  if (reduction_info(asked).rule == ReductionRule::mean && options.initial) {
    throw ValueError(fmt::format("{}: takes no `initial`", name));
  }
  bool whole = options.dtype && is_integral(*options.dtype);
  if (asked == reduction::mean && (options.where || whole)) return mean_by_division(a, options);
  Reduction reduction = row_for(asked, a);
  bool as_truth = reduction_info(reduction).rule == ReductionRule::truth && is_complex(a);
  Array in = as_truth ? xp::not_equal(a, 0) : rounded_elements(a, options.dtype);
  Array target;
  if (options.out) target = expanded_out(name, a, axes, options.keepdims, *options.out);
  UfuncTypes types = types_of(name, reduction, in, options);
  options.initial = typed_initial(name, options.initial, types.output);
  if (options.where) in = masked(name, reduction, in, options);
  // An output beside the input, and numbers that are rounded once, after `initial` joined them.
  bool direct = options.out && (*options.out).storage() != in.storage() && !options.initial &&
                ((*options.out).dtype() == types.output || is_carried(types.output));
  Array result =
      direct ? target : detail::new_array(with_ones(a.shape(), axes), types.output, a.device());
  if (in.size() == 0 && options.initial && is_order(reduction_info(reduction).rule)) {
    detail::fill_elements(name, result, *options.initial);
  } else {
    run_reduction(name, reduction, in, axes, types.compute, result);
    if (options.initial && result.size() != 0)
      start_with(name, reduction, *options.initial, result);
  }
  if (options.out) {
    if (!direct) detail::copy_elements(name, result, target);
    return *options.out;
  }
  return options.keepdims ? result : result.reshape(without_axes(result.shape(), axes));
}

// The mean of the elements that a mask leaves, or in integers, whose sums wrap around.
Array mean_by_division(const Array& a, xp::ReduceOptions options) {
  Dtype dtype =
      options.dtype ? *options.dtype : types_of("mean", reduction::mean, a, options).output;
  Array counts = options.where ? Array(*options.where) : xp::full({}, true, a.device());
  counts = xp::sum(counts.broadcast_to(a.shape()), options.axis, options.keepdims);
  ArrayOption out = options.out;
  options.out = {};
  // 16 bits do not hold the sums of many.
  bool narrow = itemsize(dtype) == 2 && !is_integral(dtype);
  options.dtype = narrow ? float32 : dtype;
  Array total = reduce(reduction::sum, rounded_elements(a, dtype), options);
  if (!is_integral(dtype)) counts = counts.astype(*options.dtype);
  Array result = total / counts;
  if (!out) return result.astype(dtype, false);
  detail::check_destination("mean", a, *out);
  detail::check_same_kind("mean", dtype, *out);
  if (result.shape() != (*out).shape()) {
    throw ShapeError(fmt::format("mean: the result of shape {} does not fit into {}",
                                 result.shape().str(), (*out).view().describe()));
  }
  detail::copy_elements("mean", result, *out);
  return *out;
}

Array position(Reduction reduction, const Array& a, const xp::AxisOptions& options) {
  const char* name = reduction_info(reduction).name;
  detail::check_defined(name, a);
  Array result;
  if (options.axis.all()) {
    result = reduce(reduction, a.reshape({a.size()}), 0, false);
    if (options.keepdims) result = result.reshape(Shape::filled(a.ndim(), 1));
  } else {
    if (options.axis.values().ndim() != 1) {
      throw ValueError(
          fmt::format("{}: takes one axis of {}, or none for all", name, a.view().describe()));
    }
    result = reduce(reduction, a, options.axis, options.keepdims);
  }
  return detail::deliver(name, result, options.out);
}

}  // namespace

Array detail::reduce_axes(Reduction asked, const Array& a, unsigned axes,
                          std::optional<Dtype> dtype) {
  const char* name = reduction_info(asked).name;
  Reduction reduction = row_for(asked, a);
  if (reduction_info(reduction).rule == ReductionRule::truth && is_complex(a)) {
    return reduce_axes(reduction, xp::not_equal(a, 0), axes);
  }
  UfuncTypes types = dtype ? UfuncTypes{*dtype, *dtype} : reduction_types(reduction, a.dtype());
  Array out = new_array(with_ones(a.shape(), axes), types.output, a.device());
  run_reduction(name, reduction, a, axes, types.compute, out);
  return out;
}

namespace xp {

#define RENSA_REDUCE(name)                                   \
  Array name(const Array& a, const ReduceOptions& options) { \
    return reduce(reduction::name, a, options);              \
  }
RENSA_REDUCE(sum)
RENSA_REDUCE(prod)
RENSA_REDUCE(mean)
RENSA_REDUCE(max)
RENSA_REDUCE(min)
RENSA_REDUCE(any)
RENSA_REDUCE(all)
RENSA_REDUCE(nansum)
RENSA_REDUCE(nanprod)
RENSA_REDUCE(nanmax)
RENSA_REDUCE(nanmin)
#undef RENSA_REDUCE

Array count_nonzero(const Array& a, const AxisOptions& options) {
  Array result = reduce(reduction::count_nonzero, a, options.axis, options.keepdims);
  return rensa::detail::deliver("count_nonzero", result, options.out);
}

Array argmax(const Array& a, const AxisOptions& options) {
  return position(reduction::argmax, a, options);
}
Array argmin(const Array& a, const AxisOptions& options) {
  return position(reduction::argmin, a, options);
}

namespace {

// Whether all elements are close, in one pass: of contiguous arrays of one dtype.
bool all_close(const char* name, const Array& a, const Array& b, const Closeness& closeness,
               bool bits) {
  operations::AllClose op(name);
  op.closeness = closeness;
  op.bits = bits;
  Array out = rensa::detail::new_array({}, bool_, a.device());
  op.a = a.operand();
  op.b = b.operand();
  op.out = out.operand();
  launch(op);
  return out.item<bool>();
}

bool are_contiguous_alike(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.size() != 0 && a.is_contiguous() &&
         b.is_contiguous() && !current_tracer;
}

bool is_integer(const Array& a) {
  return dtype_kind(a.dtype()) == 'i' || dtype_kind(a.dtype()) == 'u';
}

}  // namespace

bool array_equal(const Array& a, const Array& b, bool equal_nan) {
  rensa::detail::check_defined("array_equal", a);
  rensa::detail::check_defined("array_equal", b);
  if (a.shape() != b.shape()) return false;
  check_same_device("array_equal", a, b);
  bool real = dtype_kind(a.dtype()) == 'f', integer = is_integer(a);
  if (are_contiguous_alike(a, b) && (real || integer)) {
    return all_close("array_equal", a, b, {0, 0, equal_nan}, integer);
  }
  Array same = equal(a, b);
  if (equal_nan) same |= isnan(a) & isnan(b);
  return all(same).item<bool>();
}

bool array_equiv(const Array& a, const Array& b) {
  rensa::detail::check_defined("array_equiv", a);
  rensa::detail::check_defined("array_equiv", b);
  const Shape &s = a.shape(), &t = b.shape();
  for (int i = 1; i <= std::min(s.ndim(), t.ndim()); ++i) {
    std::int64_t x = s[s.ndim() - i], y = t[t.ndim() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return all(equal(a, b)).item<bool>();
}

Array isclose(const Array& a, const Array& b, double rtol, double atol, bool equal_nan) {
  rensa::detail::check_defined("isclose", a);
  rensa::detail::check_defined("isclose", b);
  bool real = dtype_kind(a.dtype()) != 'c' && dtype_kind(b.dtype()) != 'c';
  if (real && !current_tracer) {
    check_same_device("isclose", a, b);
    operations::IsClose op;
    op.closeness = {rtol, atol, equal_nan};
    Shape shape = broadcast_shapes("isclose", a.shape(), b.shape());
    Array out = rensa::detail::new_array(shape, bool_, a.device());
    if (out.size() == 0) return out;
    Array x = a.broadcast_to(shape), y = b.broadcast_to(shape);
    op.a = x.operand();
    op.b = y.operand();
    op.out = out.operand();
    launch(op);
    return out;
  }
  Dtype wide = promote_types(promote_types(a.dtype(), b.dtype()), float64);
  Array x = a.astype(wide, false), y = b.astype(wide, false);
  Array size = absolute(y);
  Array close = less_equal(absolute(x - y), size * rtol + atol);
  close &= isfinite(size);
  close |= equal(x, y);
  if (equal_nan) close |= isnan(x) & isnan(y);
  return close;
}

bool allclose(const Array& a, const Array& b, double rtol, double atol, bool equal_nan) {
  rensa::detail::check_defined("allclose", a);
  rensa::detail::check_defined("allclose", b);
  if (are_contiguous_alike(a, b) && dtype_kind(a.dtype()) == 'f') {
    check_same_device("allclose", a, b);
    return all_close("allclose", a, b, {rtol, atol, equal_nan}, false);
  }
  return all(isclose(a, b, rtol, atol, equal_nan)).item<bool>();
}

}  // namespace xp

}  // namespace rensa

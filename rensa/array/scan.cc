// Running sums and products.
#include "rensa/array/scan.h"

#include <fmt/format.h>

#include "rensa/array/along_axis.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa {

namespace {

bool is_floating(Dtype dtype) { return dtype_kind(dtype) == 'f' || dtype_kind(dtype) == 'c'; }

// The dtype of a result that nothing is said about.
Dtype default_dtype(Dtype dtype) { return is_floating(dtype) ? dtype : detail::carrier(dtype); }

Array cumulate(const char* operation, bool product, const Array& a, const Axes& axis,
               std::optional<Dtype> dtype, const ArrayOption& out) {
  detail::check_defined(operation, a);
  auto [array, along] = detail::along_one_axis(operation, a.ndim() == 0 ? a.reshape({1}) : a, axis);
  // Without a dtype the elements meet in that of `out`.
  Dtype result_dtype = dtype.value_or(default_dtype(a.dtype()));
  Dtype computed = result_dtype;
  if (out && !dtype && (*out).defined() && is_floating((*out).dtype())) {
    computed = promote_types(a.dtype(), (*out).dtype());
  }
  Array result = detail::running(operation, product, array, along, computed);
  return detail::deliver(operation, result, out);
}

Array cumulate_numbers(const char* operation, bool product, const Array& a,
                       const xp::ScanOptions& o) {
  detail::check_defined(operation, a);
  if (!is_floating(a.dtype())) return cumulate(operation, product, a, o.axis, o.dtype, o.out);
  Array neutral = xp::full({}, product ? 1 : 0, a.dtype(), a.device());
  return cumulate(operation, product, xp::where(xp::equal(a, a), a, neutral), o.axis, o.dtype,
                  o.out);
}

Array cumulative(const char* operation, bool product, const Array& a,
                 const xp::CumulativeOptions& options) {
  const Axes& axis = options.axis;
  detail::check_defined(operation, a);
  if (axis.all() && a.ndim() > 1) {
    throw ValueError(fmt::format("{}: {} has several axes, say along which one", operation,
                                 a.view().describe()));
  }
  if (!options.include_initial) {
    return cumulate(operation, product, a, axis, options.dtype, options.out);
  }
  Array sums = cumulate(operation, product, a, axis, options.dtype, {});
  int along = axis.all() || a.ndim() == 0 ? 0 : detail::along_one_axis(operation, a, axis).axis;
  Shape shape = sums.shape(), first = sums.shape();
  std::int64_t step = shape[along]++;
  first[along] = 1;
  Array result = detail::new_array(shape, sums.dtype(), sums.device());
  detail::fill_elements(operation, detail::new_view(result, 0, first, result.strides()),
                        product ? 1 : 0);
  if (step > 0) {
    detail::copy_elements(
        operation, sums,
        detail::new_view(result, result.strides()[along], sums.shape(), result.strides()));
  }
  return detail::deliver(operation, result, options.out);
}

}  // namespace

namespace xp {

Array cumsum(const Array& a, const ScanOptions& o) {
  return cumulate("cumsum", false, a, o.axis, o.dtype, o.out);
}
Array cumprod(const Array& a, const ScanOptions& o) {
  return cumulate("cumprod", true, a, o.axis, o.dtype, o.out);
}
Array nancumsum(const Array& a, const ScanOptions& options) {
  return cumulate_numbers("nancumsum", false, a, options);
}
Array nancumprod(const Array& a, const ScanOptions& options) {
  return cumulate_numbers("nancumprod", true, a, options);
}
Array cumulative_sum(const Array& a, const CumulativeOptions& options) {
  return cumulative("cumulative_sum", false, a, options);
}
Array cumulative_prod(const Array& a, const CumulativeOptions& options) {
  return cumulative("cumulative_prod", true, a, options);
}

}  // namespace xp

}  // namespace rensa

// The elementwise routines: what runs a row of ops.def, and the operators made of rows. One path
// does the checks, the dtypes and the broadcasting of all.
#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/elementwise/elementwise.h"

namespace rensa {

namespace ufunc {
extern const UfuncInfo ldexp, divide, bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift;
}

namespace {

using Arguments = std::initializer_list<xp::ElementwiseArgument>;

[[noreturn]] void throw_no_broadcast(const char* name, Arguments arguments) {
  std::string shapes, operands;
  for (const auto& argument : arguments) {
    if (!argument.array) continue;
    if (!shapes.empty()) {
      shapes += " and ";
      operands += ", ";
    }
    shapes += argument.array->shape().str();
    operands += argument.array->view().describe();
  }
  throw ShapeError(
      fmt::format("{}: operands of shapes {} do not broadcast: {}", name, shapes, operands));
}

// Broadcasts `shape` with `other`; false where they do not fit.
bool broadcast_into(Shape* shape, const Shape& other) {
  while (shape->ndim() < other.ndim()) shape->insert(0, 1);
  int added = shape->ndim() - other.ndim();
  for (int i = 0; i < other.ndim(); ++i) {
    std::int64_t& extent = (*shape)[added + i];
    if (extent == other[i] || other[i] == 1) continue;
    if (extent != 1) return false;
    extent = other[i];
  }
  return true;
}

// The first array of the arguments, after checking that all are arrays of one device.
const Array& check_operands(const char* name, Arguments arguments) {
  const Array* first = nullptr;
  for (const auto& argument : arguments) {
    if (!argument.array) continue;
    detail::check_defined(name, *argument.array);
    if (!first) first = argument.array;
    check_same_device(name, *first, *argument.array);
  }
  if (!first) throw ValueError(fmt::format("{}: none of the operands is an array", name));
  return *first;
}

Shape result_shape(const char* name, const Array& first, Arguments arguments) {
  Shape shape = first.shape();
  for (const auto& argument : arguments) {
    if (!argument.array || argument.array->shape() == shape) continue;
    if (!broadcast_into(&shape, argument.array->shape())) throw_no_broadcast(name, arguments);
  }
  return shape;
}

// What the arrays meet in. A floating function converts each of them on its own: int8 and uint8 go
// through float16, though they meet in int16.
Dtype common_dtype_of_arrays(DtypeRule rule, const xp::ElementwiseArgument* begin,
                             const xp::ElementwiseArgument* end, int* count) {
  bool floating = rule == DtypeRule::floating || rule == DtypeRule::analytic;
  Dtype common = bool_;
  DtypeSet all;
  *count = 0;
  for (const auto* argument = begin; argument != end; ++argument) {
    if (!argument->array) continue;
    Dtype d = argument->array->dtype();
    all.add(d);
    if (++*count == 1) common = d;
    else if (floating) common = promote_types(floating_dtype(common), floating_dtype(d));
    else common = *count == 2 ? promote_types(common, d) : all.promoted();
  }
  return common;
}

// A bound of `clip` that no number of the dtype reaches does nothing.
bool is_idle_bound(Ufunc ufunc, const xp::ElementwiseArgument* begin,
                   const xp::ElementwiseArgument* argument) {
  if (ufunc != ufunc::clip || argument == begin) return false;
  bool negative = argument->scalar.kind() == 'i' && argument->scalar.integer() < 0;
  return negative == (argument == begin + 1);
}

// What the inputs meet in: arrays by promotion, then numbers as weak ones. An integer that an
// integer dtype which is computed in cannot hold is an error, but for comparisons, which are exact
// about it, and `where`, which wraps it around.
Dtype common_dtype(const char* name, Ufunc ufunc, Arguments arguments) {
  const xp::ElementwiseArgument* a = arguments.begin();
  bool two_arrays = arguments.size() == 2 && a[0].array && a[1].array;
  if (two_arrays && a[0].array->dtype() == a[1].array->dtype()) return a[0].array->dtype();
  DtypeRule rule = ufunc_info(ufunc).rule;
  // The condition of `where` has no say, nor have exponents.
  const auto* begin = arguments.begin() + (rule == DtypeRule::where ? 1 : 0);
  const auto* end = rule == DtypeRule::exponent ? begin + 1 : arguments.end();
  int arrays = 0;
  Dtype common = common_dtype_of_arrays(rule, begin, end, &arrays);
  if (arrays == end - begin) return common;
  bool compares = rule == DtypeRule::comparison || rule == DtypeRule::equality;
  for (const auto* argument = begin; argument != end; ++argument) {
    if (argument->array) continue;
    if (arrays == 0 || (compares && detail::is_out_of_range(argument->scalar, common))) {
      common = promote_types(common, argument->scalar.default_dtype());
    } else {
      common = argument->scalar.result_type(common);
      if (rule == DtypeRule::where || !detail::is_out_of_range(argument->scalar, common)) continue;
      if (is_idle_bound(ufunc, begin, argument)) continue;
      detail::check_in_range(name, argument->scalar, ufunc_types(ufunc, common).compute);
    }
  }
  // An integer alone, before its exponents: float16 is enough.
  if (rule == DtypeRule::exponent && arrays == 0 && common == int64) return int8;
  return common;
}

void check_exponents(const char* name, const xp::ElementwiseArgument& exponents) {
  bool fits = exponents.array ? can_cast_same_kind(exponents.array->dtype(), int64) &&
                                    exponents.array->dtype() != uint64
                              : exponents.scalar.is_integral();
  if (fits) return;
  std::string what = exponents.array ? exponents.array->view().describe() : "a number";
  throw DtypeError(
      fmt::format("{}: the exponents ({}) are not integers of up to 64 bits with a "
                  "sign; cast with astype",
                  name, what));
}

// The least or the greatest number of an integer dtype, whichever `value` lies beyond.
Scalar nearest_integer(Scalar value, Dtype dtype) {
  int bits = static_cast<int>(itemsize(dtype)) * 8;
  bool below = value.kind() == 'i' && value.integer() < 0;
  if (dtype_kind(dtype) == 'u') return below ? std::uint64_t{0} : ~std::uint64_t{0} >> (64 - bits);
  std::int64_t greatest = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  return below ? -greatest - 1 : greatest;
}

// A number as a kernel of `dtype` gets it: rounded to the 16-bit floats, which compute in float,
// and the nearest bound of the integers that `clip` may be given one beyond.
Scalar operand_number(Ufunc ufunc, Scalar value, Dtype dtype) {
  if (ufunc == ufunc::clip && detail::is_out_of_range(value, dtype)) {
    return nearest_integer(value, dtype);
  }
  if (dtype == float16) return half_t(static_cast<float>(value.real()));
  if (dtype == bfloat16) return bfloat16_t(static_cast<float>(value.real()));
  return value;
}

// What casts into `out` may do, and casts of operands where NumPy's word says more than promotion
// does.
using Casting = std::string_view;

void check_output(const char* name, const Array& first, const Shape& shape, Dtype dtype,
                  const Array& out, Casting casting) {
  detail::check_destination(name, first, out);
  if (casting == "same_kind") detail::check_same_kind(name, dtype, out);
  else detail::check_casting(name, dtype, out.dtype(), casting);
  Shape written = shape;
  if (!broadcast_into(&written, out.shape()) || written != out.shape()) {
    throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", name,
                                 shape.str(), out.view().describe()));
  }
}

void run(const char* name, Ufunc ufunc, Dtype compute, Arguments arguments, const Array& out) {
  operations::Elementwise op(name, kernel_row(ufunc, compute));
  op.compute = compute;
  op.num_inputs = static_cast<int>(arguments.size());
  op.out = out.operand();
  operations::ElementwiseInput* in = op.in;
  for (const auto& argument : arguments) {
    if (argument.array) {
      in->array.storage = argument.array->storage().get();
      in->array.view = argument.array->shape() == out.shape()
                           ? argument.array->view()
                           : broadcast_view(argument.array->view(), out.shape());
    } else {
      in->scalar = operand_number(ufunc, argument.scalar, compute);
    }
    ++in;
  }
  ArrayView* views[4] = {&op.out.view};
  std::size_t count = 1;
  for (int k = 0; k < op.num_inputs; ++k) {
    if (op.in[k].array.present()) views[count++] = &op.in[k].array.view;
  }
  detail::order_axes_by_output({views, count});
  launch(op);
}

bool clashes(const xp::ElementwiseArgument& in, const Array& out) {
  return in.array && in.array->storage() == out.storage() &&
         detail::partly_overlap(broadcast_view(in.array->view(), out.shape()), out.view());
}

// As run(), where an input may share memory with `out`: one that does, and is not the same
// elements, is copied first.
void run_into(const char* name, Ufunc ufunc, Dtype compute, Arguments arguments, const Array& out) {
  const xp::ElementwiseArgument* a = arguments.begin();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!clashes(a[i], out)) continue;
    Array copy = a[i].array->copy();
    auto argument = [&](std::size_t k) { return k == i ? xp::ElementwiseArgument(copy) : a[k]; };
    switch (arguments.size()) {
      case 1: return run(name, ufunc, compute, {argument(0)}, out);
      case 2: return run_into(name, ufunc, compute, {argument(0), argument(1)}, out);
      default: return run_into(name, ufunc, compute, {argument(0), argument(1), argument(2)}, out);
    }
  }
  run(name, ufunc, compute, arguments, out);
}

// `where` reads its condition in the type that it computes in, which may not hold every truth: 0.1
// as an integer, 1e-300 as a float.
bool needs_truth(const Array& condition, Dtype compute) {
  char kind = dtype_kind(condition.dtype());
  return (kind == 'f' || kind == 'c') && condition.dtype() != compute;
}

bool is_order(Ufunc ufunc) {
  return ufunc_info(ufunc).rule == DtypeRule::comparison || ufunc == ufunc::equal ||
         ufunc == ufunc::not_equal;
}

// Whether a signed and an unsigned operand of a comparison meet in float64, which does not hold
// their every value.
bool is_inexact(Ufunc ufunc, Dtype common, Arguments arguments) {
  if (common != float64 || !is_order(ufunc)) return false;
  char kinds[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const xp::ElementwiseArgument& a = arguments.begin()[i];
    kinds[i] = a.array ? dtype_kind(a.array->dtype()) : a.scalar.kind();
  }
  return (kinds[0] == 'i' && kinds[1] == 'u') || (kinds[0] == 'u' && kinds[1] == 'i');
}

Ufunc turned_around(Ufunc ufunc) {
  if (ufunc == ufunc::less) return ufunc::greater;
  if (ufunc == ufunc::less_equal) return ufunc::greater_equal;
  if (ufunc == ufunc::greater) return ufunc::less;
  if (ufunc == ufunc::greater_equal) return ufunc::less_equal;
  return ufunc;
}

// Signed with unsigned, exactly: a negative number is below every other, and the rest meets in
// uint64.
Array compare_exactly(const char* name, Ufunc ufunc, Arguments arguments, const Array& first,
                      const Array* out) {
  auto array_of = [&](const xp::ElementwiseArgument& a) {
    return a.array ? *a.array : xp::full({}, a.scalar, first.device());
  };
  Array a = array_of(arguments.begin()[0]), b = array_of(arguments.begin()[1]);
  if (dtype_kind(a.dtype()) == 'u') {
    std::swap(a, b);
    ufunc = turned_around(ufunc);
  }
  bool below = ufunc == ufunc::less || ufunc == ufunc::less_equal || ufunc == ufunc::not_equal;
  Array sign = below ? xp::less(a, 0) : xp::greater_equal(a, 0);
  Array rest = detail::elementwise(name, ufunc, {a.astype(uint64), b.astype(uint64)}, nullptr);
  return detail::elementwise(name, below ? ufunc::logical_or : ufunc::logical_and, {sign, rest},
                             out);
}

// Whether a kernel's value is always one of its output's dtype, so that any other dtype may take it
// from the kernel at once: not so of narrow integers and floats, bool sums among them, which wrap
// around or round first.
bool stores_exactly(Ufunc ufunc, const UfuncTypes& types) {
  if (types.output != types.compute || ufunc == ufunc::copy || ufunc == ufunc::where) return true;
  switch (types.output) {
    case int64:
    case uint64:
    case float32:
    case float64:
    case complex64:
    case complex128: return true;
    default: return false;
  }
}

Array new_result(const Shape& shape, Dtype dtype, const Array& first, Arguments arguments) {
  const Array* arrays[3];
  std::size_t count = 0;
  for (const auto& argument : arguments) {
    if (argument.array) arrays[count++] = argument.array;
  }
  return detail::new_array_beside({arrays, count}, shape, dtype, first.device());
}

// A call once it is known what the arguments meet in.
Array compute_in(Dtype common, const char* name, Ufunc ufunc, Arguments arguments,
                 const Array& first, const Array* out, Casting casting) {
  const xp::ElementwiseArgument* a = arguments.begin();
  UfuncTypes types = ufunc_types(ufunc, common);
  if (ufunc == ufunc::where && a[0].array && needs_truth(*a[0].array, types.compute)) {
    Array truth = a[0].array->astype(bool_);
    return compute_in(common, name, ufunc, {truth, a[1], a[2]}, first, out, casting);
  }
  if (casting == "no" || casting == "equiv") {
    for (const auto& argument : arguments) {
      bool apart = (ufunc == ufunc::where && &argument == a) ||
                   (ufunc == ufunc::ldexp && &argument == a + 1);
      if (!argument.array || apart) continue;
      detail::check_casting(name, argument.array->dtype(), types.compute, casting);
    }
  }
  Shape shape = result_shape(name, first, arguments);
  if (out) check_output(name, first, shape, types.output, *out, casting);
  if (!out || (out->dtype() != types.output && !stores_exactly(ufunc, types))) {
    Array result = new_result(shape, types.output, first, arguments);
    if (shape.total() != 0) run(name, ufunc, types.compute, arguments, result);
    if (!out) return result;
    detail::copy_elements(name, result, *out);
  } else if (out->size() != 0) {
    run_into(name, ufunc, types.compute, arguments, *out);
  }
  return *out;
}

// An operand for a computation in `dtype`: as it is where the kernel's conversion is exact.
Array prepared(const char* name, const Array& a, Dtype dtype, Casting casting) {
  detail::check_casting(name, a.dtype(), dtype, casting);
  return promote_types(a.dtype(), dtype) == dtype ? a : a.astype(dtype);
}

void check_number(const char* name, Scalar number, Dtype dtype, Casting casting) {
  if (casting != "unsafe" && number.result_type(dtype) != dtype) {
    throw DtypeError(
        fmt::format("{}: a number of dtype {} cannot be cast to {} under the rule "
                    "\"{}\"",
                    name, dtype_name(number.default_dtype()), dtype_name(dtype), casting));
  }
  detail::check_in_range(name, number, dtype);
}

Array compute_as(Dtype dtype, const char* name, Ufunc ufunc, Arguments arguments, const Array* out,
                 Casting casting) {
  const Array& first = check_operands(name, arguments);
  if (ufunc_types(ufunc, dtype).compute != dtype) {
    throw DtypeError(fmt::format("{}: is not computed in {}", name, dtype_name(dtype)));
  }
  Array converted[3];
  xp::ElementwiseArgument a[3] = {0, 0, 0};
  DtypeRule rule = ufunc_info(ufunc).rule;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    a[i] = arguments.begin()[i];
    if (rule == DtypeRule::where && i == 0) continue;
    if (rule == DtypeRule::exponent && i == 1) continue;
    if (!a[i].array) {
      check_number(name, a[i].scalar, dtype, casting);
      continue;
    }
    converted[i] = prepared(name, *a[i].array, dtype, casting);
    a[i] = converted[i];
  }
  switch (arguments.size()) {
    case 1: return compute_in(dtype, name, ufunc, {a[0]}, first, out, casting);
    case 2: return compute_in(dtype, name, ufunc, {a[0], a[1]}, first, out, casting);
    default: return compute_in(dtype, name, ufunc, {a[0], a[1], a[2]}, first, out, casting);
  }
}

Array compute(const char* name, Ufunc ufunc, Arguments arguments, const Array* out,
              Casting casting) {
  const Array& first = check_operands(name, arguments);
  Dtype common = common_dtype(name, ufunc, arguments);
  if (is_inexact(ufunc, common, arguments)) {
    return compare_exactly(name, ufunc, arguments, first, out);
  }
  return compute_in(common, name, ufunc, arguments, first, out, casting);
}

}  // namespace

Array detail::elementwise(const char* name, Ufunc ufunc, Arguments arguments, const Array* out) {
  if (ufunc == ufunc::ldexp) check_exponents(name, arguments.begin()[1]);
  return compute(name, ufunc, arguments, out, "same_kind");
}

Array detail::elementwise(const char* name, Ufunc ufunc, Arguments arguments,
                          const xp::UfuncOptions& options) {
  if (ufunc == ufunc::ldexp) check_exponents(name, arguments.begin()[1]);
  check_casting(name, bool_, bool_, options.casting);  // one of NumPy's words
  auto result_in = [&](const Array* out) {
    return options.dtype ? compute_as(*options.dtype, name, ufunc, arguments, out, options.casting)
                         : compute(name, ufunc, arguments, out, options.casting);
  };
  if (!options.where) return result_in(options.out.get());
  const Array& mask = *options.where;
  check_bool_mask(name, mask);
  Array result = result_in(nullptr);
  if (!options.out) {
    return elementwise(name, ufunc::where, {mask, result, xp::zeros_like(result)}, nullptr);
  }
  const Array& out = *options.out;
  check_output(name, result, result.shape(), result.dtype(), out, options.casting);
  return elementwise(name, ufunc::where, {mask, result.astype(out.dtype(), false), out}, &out);
}

namespace xp {

Array elementwise(Ufunc ufunc, Arguments arguments, const Array* out) {
  const UfuncInfo& info = ufunc_info(ufunc);
  if (arguments.size() != static_cast<std::size_t>(info.inputs)) {
    throw ValueError(fmt::format("{}: {} operands given, it takes {}", info.name, arguments.size(),
                                 info.inputs));
  }
  return rensa::detail::elementwise(info.name, ufunc, arguments, out);
}

#define RENSA_TERNARY_OF(name, B, C)                                           \
  Array name(const Array& a, B b, C c) {                                       \
    return rensa::detail::elementwise(#name, ufunc::name, {a, b, c}, nullptr); \
  }                                                                            \
  Array name(const Array& a, B b, C c, const UfuncOptions& options) {          \
    return rensa::detail::elementwise(#name, ufunc::name, {a, b, c}, options); \
  }
#define RENSA_TERNARY(name)                          \
  RENSA_TERNARY_OF(name, const Array&, const Array&) \
  RENSA_TERNARY_OF(name, const Array&, Scalar)       \
  RENSA_TERNARY_OF(name, Scalar, const Array&)       \
  RENSA_TERNARY_OF(name, Scalar, Scalar)
RENSA_TERNARY(where)
RENSA_TERNARY(clip)
#undef RENSA_TERNARY
#undef RENSA_TERNARY_OF

}  // namespace xp

// --- operators ---
namespace operators {

#define RENSA_OPERATOR(name)                                            \
  Array name(const Array& a, const Array& b) { return xp::name(a, b); } \
  Array name(const Array& a, Scalar b) { return xp::name(a, b); }       \
  Array name(Scalar a, const Array& b) { return xp::name(a, b); }
RENSA_OPERATOR(add)
RENSA_OPERATOR(subtract)
RENSA_OPERATOR(multiply)
RENSA_OPERATOR(divide)
RENSA_OPERATOR(remainder)
RENSA_OPERATOR(equal)
RENSA_OPERATOR(not_equal)
RENSA_OPERATOR(less)
RENSA_OPERATOR(less_equal)
RENSA_OPERATOR(greater)
RENSA_OPERATOR(greater_equal)
RENSA_OPERATOR(bitwise_and)
RENSA_OPERATOR(bitwise_or)
RENSA_OPERATOR(bitwise_xor)
RENSA_OPERATOR(left_shift)
RENSA_OPERATOR(right_shift)
#undef RENSA_OPERATOR

Array negative(const Array& a) { return xp::negative(a); }
Array invert(const Array& a) { return xp::invert(a); }

}  // namespace operators

#define RENSA_INPLACE(symbol, name)                            \
  const Array& Array::operator symbol(const Array& b) const {  \
    detail::elementwise(#name, ufunc::name, {*this, b}, this); \
    return *this;                                              \
  }                                                            \
  const Array& Array::operator symbol(Scalar b) const {        \
    detail::elementwise(#name, ufunc::name, {*this, b}, this); \
    return *this;                                              \
  }
RENSA_INPLACE(+=, add)
RENSA_INPLACE(-=, subtract)
RENSA_INPLACE(*=, multiply)
RENSA_INPLACE(/=, divide)
RENSA_INPLACE(%=, remainder)
RENSA_INPLACE(&=, bitwise_and)
RENSA_INPLACE(|=, bitwise_or)
RENSA_INPLACE(^=, bitwise_xor)
RENSA_INPLACE(<<=, left_shift)
RENSA_INPLACE(>>=, right_shift)
#undef RENSA_INPLACE

}  // namespace rensa

// The elementwise routines: every row of ops.def as a function of xp, and the operators made of
// them. One path does the checks, the dtypes and the broadcasting of all.
#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/operations.h"

namespace rensa {

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
  Dtype common = bool_;
  *count = 0;
  for (const auto* argument = begin; argument != end; ++argument) {
    if (!argument->array) continue;
    Dtype d = argument->array->dtype();
    if (++*count == 1) common = d;
    else if (rule != DtypeRule::floating && rule != DtypeRule::analytic)
      common = promote_types(common, d);
    else common = promote_types(floating_dtype(common), floating_dtype(d));
  }
  return common;
}

// What the inputs meet in: arrays by promotion, then numbers as weak ones. An integer that the
// arrays' integer dtype cannot hold is an error, but for comparisons, which are exact about it.
Dtype common_dtype(const char* name, Ufunc ufunc, Arguments arguments) {
  DtypeRule rule = ufunc_info(ufunc).rule;
  // The condition of `where` has no say.
  const auto* begin = arguments.begin() + (rule == DtypeRule::where ? 1 : 0);
  int arrays = 0;
  Dtype common = common_dtype_of_arrays(rule, begin, arguments.end(), &arrays);
  bool compares = rule == DtypeRule::comparison || rule == DtypeRule::equality;
  for (const auto* argument = begin; argument != arguments.end(); ++argument) {
    if (argument->array) continue;
    if (arrays == 0 || (compares && detail::is_out_of_range(argument->scalar, common))) {
      common = promote_types(common, argument->scalar.default_dtype());
    } else {
      common = argument->scalar.result_type(common);
      detail::check_in_range(name, argument->scalar, common);
    }
  }
  return common;
}

// A number as the 16-bit floats hold it, which kernels compute in float.
Scalar rounded(Scalar value, Dtype dtype) {
  if (dtype == float16) return half_t(static_cast<float>(value.real()));
  if (dtype == bfloat16) return bfloat16_t(static_cast<float>(value.real()));
  return value;
}

void check_output(const char* name, const Array& first, const Shape& shape, Dtype dtype,
                  const Array& out) {
  detail::check_destination(name, first, out);
  detail::check_same_kind(name, dtype, out);
  Shape written = shape;
  if (!broadcast_into(&written, out.shape()) || written != out.shape()) {
    throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", name,
                                 shape.str(), out.view().describe()));
  }
}

void run(const char* name, Ufunc ufunc, Dtype compute, Arguments arguments, const Array& out) {
  Elementwise op(name, ufunc);
  op.compute = compute;
  op.num_inputs = static_cast<int>(arguments.size());
  op.out = out.operand();
  ElementwiseInput* in = op.in;
  for (const auto& argument : arguments) {
    if (argument.array) {
      in->array.storage = argument.array->storage().get();
      in->array.view = argument.array->shape() == out.shape()
                           ? argument.array->view()
                           : broadcast_view(argument.array->view(), out.shape());
    } else {
      in->scalar = rounded(argument.scalar, compute);
    }
    ++in;
  }
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
  return ufunc_info(ufunc).rule == DtypeRule::comparison || ufunc == Ufunc::equal ||
         ufunc == Ufunc::not_equal;
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
  switch (ufunc) {
    case Ufunc::less: return Ufunc::greater;
    case Ufunc::less_equal: return Ufunc::greater_equal;
    case Ufunc::greater: return Ufunc::less;
    case Ufunc::greater_equal: return Ufunc::less_equal;
    default: return ufunc;
  }
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
  bool below = ufunc == Ufunc::less || ufunc == Ufunc::less_equal || ufunc == Ufunc::not_equal;
  Array sign = below ? xp::less(a, 0) : xp::greater_equal(a, 0);
  Array rest = detail::elementwise(name, ufunc, {a.astype(uint64), b.astype(uint64)}, nullptr);
  return detail::elementwise(name, below ? Ufunc::logical_or : Ufunc::logical_and, {sign, rest},
                             out);
}

// elementwise() once it is known what the arguments meet in.
Array compute_in(Dtype common, const char* name, Ufunc ufunc, Arguments arguments,
                 const Array& first, const Array* out);

// An operand for a computation in `dtype`: as it is where the kernel's conversion is exact.
Array prepared(const char* name, const Array& a, Dtype dtype) {
  if (!can_cast_same_kind(a.dtype(), dtype)) {
    throw DtypeError(
        fmt::format("{}: {} cannot be computed in {} (\"same_kind\"); cast with astype", name,
                    a.view().describe(), dtype_name(dtype)));
  }
  return promote_types(a.dtype(), dtype) == dtype ? a : a.astype(dtype);
}

Array compute_as(Dtype dtype, const char* name, Ufunc ufunc, Arguments arguments,
                 const Array* out) {
  const Array& first = check_operands(name, arguments);
  if (ufunc_types(ufunc, dtype).compute != dtype) {
    throw DtypeError(fmt::format("{}: is not computed in {}", name, dtype_name(dtype)));
  }
  Array converted[3];
  xp::ElementwiseArgument a[3] = {0, 0, 0};
  bool condition = ufunc == Ufunc::where;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    a[i] = arguments.begin()[i];
    if (!a[i].array || (condition && i == 0)) continue;
    converted[i] = prepared(name, *a[i].array, dtype);
    a[i] = converted[i];
  }
  switch (arguments.size()) {
    case 1: return compute_in(dtype, name, ufunc, {a[0]}, first, out);
    case 2: return compute_in(dtype, name, ufunc, {a[0], a[1]}, first, out);
    default: return compute_in(dtype, name, ufunc, {a[0], a[1], a[2]}, first, out);
  }
}

}  // namespace

Array detail::elementwise(const char* name, Ufunc ufunc, Arguments arguments, const Array* out) {
  const Array& first = check_operands(name, arguments);
  Dtype common = common_dtype(name, ufunc, arguments);
  if (is_inexact(ufunc, common, arguments)) {
    return compare_exactly(name, ufunc, arguments, first, out);
  }
  return compute_in(common, name, ufunc, arguments, first, out);
}

Array detail::elementwise(const char* name, Ufunc ufunc, Arguments arguments,
                          const xp::UfuncOptions& options) {
  auto compute = [&](const Array* out) {
    return options.dtype ? compute_as(*options.dtype, name, ufunc, arguments, out)
                         : elementwise(name, ufunc, arguments, out);
  };
  if (!options.where) return compute(options.out.get());
  const Array& mask = *options.where;
  check_defined(name, mask);
  if (mask.dtype() != bool_) {
    throw DtypeError(fmt::format("{}: where takes bool, not {}", name, mask.view().describe()));
  }
  Array result = compute(nullptr);
  if (!options.out) {
    return elementwise(name, Ufunc::where, {mask, result, xp::zeros_like(result)}, nullptr);
  }
  check_output(name, result, result.shape(), result.dtype(), *options.out);
  return elementwise(name, Ufunc::where, {mask, result, *options.out}, options.out.get());
}

namespace {

Array compute_in(Dtype common, const char* name, Ufunc ufunc, Arguments arguments,
                 const Array& first, const Array* out) {
  const xp::ElementwiseArgument* a = arguments.begin();
  UfuncTypes types = ufunc_types(ufunc, common);
  if (ufunc == Ufunc::where && a[0].array && needs_truth(*a[0].array, types.compute)) {
    Array truth = a[0].array->astype(bool_);
    return compute_in(common, name, ufunc, {truth, a[1], a[2]}, first, out);
  }
  Shape shape = result_shape(name, first, arguments);
  if (!out) {
    Array result = detail::new_array(shape, types.output, first.device());
    if (shape.total() != 0) run(name, ufunc, types.compute, arguments, result);
    return result;
  }
  check_output(name, first, shape, types.output, *out);
  if (out->size() != 0) run_into(name, ufunc, types.compute, arguments, *out);
  return *out;
}

}  // namespace

namespace xp {

Array elementwise(Ufunc ufunc, Arguments arguments, const Array* out) {
  const UfuncInfo& info = ufunc_info(ufunc);
  if (arguments.size() != static_cast<std::size_t>(info.inputs)) {
    throw ValueError(fmt::format("{}: {} operands given, it takes {}", info.name, arguments.size(),
                                 info.inputs));
  }
  return rensa::detail::elementwise(info.name, ufunc, arguments, out);
}

#define RENSA_DEFINE_1(name)                                             \
  Array name(const Array& a) {                                           \
    return rensa::detail::elementwise(#name, Ufunc::name, {a}, nullptr); \
  }                                                                      \
  Array name(const Array& a, const UfuncOptions& options) {              \
    return rensa::detail::elementwise(#name, Ufunc::name, {a}, options); \
  }
#define RENSA_BINARY(name, A, B)                                                                   \
  Array name(A a, B b) { return rensa::detail::elementwise(#name, Ufunc::name, {a, b}, nullptr); } \
  Array name(A a, B b, const UfuncOptions& options) {                                              \
    return rensa::detail::elementwise(#name, Ufunc::name, {a, b}, options);                        \
  }
#define RENSA_DEFINE_2(name)                     \
  RENSA_BINARY(name, const Array&, const Array&) \
  RENSA_BINARY(name, const Array&, Scalar)       \
  RENSA_BINARY(name, Scalar, const Array&)
#define RENSA_TERNARY(name, B, C)                                              \
  Array name(const Array& a, B b, C c) {                                       \
    return rensa::detail::elementwise(#name, Ufunc::name, {a, b, c}, nullptr); \
  }                                                                            \
  Array name(const Array& a, B b, C c, const UfuncOptions& options) {          \
    return rensa::detail::elementwise(#name, Ufunc::name, {a, b, c}, options); \
  }
#define RENSA_DEFINE_3(name)                      \
  RENSA_TERNARY(name, const Array&, const Array&) \
  RENSA_TERNARY(name, const Array&, Scalar)       \
  RENSA_TERNARY(name, Scalar, const Array&)       \
  RENSA_TERNARY(name, Scalar, Scalar)
#define RENSA_UFUNC(name, inputs, rule, expression) RENSA_DEFINE_##inputs(name)
#define RENSA_KERNEL(name, inputs, rule, expression)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_KERNEL
#undef RENSA_DEFINE_1
#undef RENSA_DEFINE_2
#undef RENSA_DEFINE_3
#undef RENSA_BINARY
#undef RENSA_TERNARY

}  // namespace xp

// --- operators ----------------------------------------------------------------------------------
#define RENSA_OPERATOR(symbol, name)                                               \
  Array operator symbol(const Array& a, const Array& b) { return xp::name(a, b); } \
  Array operator symbol(const Array& a, Scalar b) { return xp::name(a, b); }       \
  Array operator symbol(Scalar a, const Array& b) { return xp::name(a, b); }
RENSA_OPERATOR(+, add)
RENSA_OPERATOR(-, subtract)
RENSA_OPERATOR(*, multiply)
RENSA_OPERATOR(/, divide)
RENSA_OPERATOR(%, remainder)
RENSA_OPERATOR(==, equal)
RENSA_OPERATOR(!=, not_equal)
RENSA_OPERATOR(<, less)
RENSA_OPERATOR(<=, less_equal)
RENSA_OPERATOR(>, greater)
RENSA_OPERATOR(>=, greater_equal)
RENSA_OPERATOR(&, bitwise_and)
RENSA_OPERATOR(|, bitwise_or)
RENSA_OPERATOR(^, bitwise_xor)
RENSA_OPERATOR(<<, left_shift)
RENSA_OPERATOR(>>, right_shift)
#undef RENSA_OPERATOR

Array operator-(const Array& a) { return xp::negative(a); }

Array operator~(const Array& a) { return xp::invert(a, {}); }

Array xp::invert(const Array& a, const UfuncOptions& options) {
  rensa::detail::check_defined("invert", a);
  auto flip = [&](Ufunc ufunc, std::initializer_list<ElementwiseArgument> arguments) {
    return rensa::detail::elementwise("invert", ufunc, arguments, options);
  };
  switch (dtype_kind(a.dtype())) {
    case 'b': return flip(Ufunc::logical_not, {a});
    case 'i': return flip(Ufunc::bitwise_xor, {a, Scalar(-1)});
    case 'u': {
      std::uint64_t ones = ~std::uint64_t{0} >> (64 - 8 * itemsize(a.dtype()));
      return flip(Ufunc::bitwise_xor, {a, Scalar(ones)});
    }
    default:
      throw DtypeError(
          fmt::format("invert: {} is not taken, only bool and integers", a.view().describe()));
  }
}

#define RENSA_INPLACE(symbol, name)                            \
  const Array& Array::operator symbol(const Array& b) const {  \
    detail::elementwise(#name, Ufunc::name, {*this, b}, this); \
    return *this;                                              \
  }                                                            \
  const Array& Array::operator symbol(Scalar b) const {        \
    detail::elementwise(#name, Ufunc::name, {*this, b}, this); \
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

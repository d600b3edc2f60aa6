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
    else if (rule != DtypeRule::floating) common = promote_types(common, d);
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
  detail::check_defined(name, out);
  check_same_device(name, first, out);
  detail::check_writable(name, out);
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

}  // namespace

Array detail::elementwise(const char* name, Ufunc ufunc, Arguments arguments, const Array* out) {
  const xp::ElementwiseArgument* a = arguments.begin();
  const Array& first = check_operands(name, arguments);
  Dtype common = common_dtype(name, ufunc, arguments);
  UfuncTypes types = ufunc_types(ufunc, common);
  if (ufunc == Ufunc::where && a[0].array && needs_truth(*a[0].array, types.compute)) {
    Array truth = a[0].array->astype(bool_);
    return elementwise(name, ufunc, {truth, a[1], a[2]}, out);
  }
  Shape shape = result_shape(name, first, arguments);
  if (!out) {
    Array result = new_array(shape, types.output, first.device());
    if (shape.total() != 0) run(name, ufunc, types.compute, arguments, result);
    return result;
  }
  check_output(name, first, shape, types.output, *out);
  if (out->size() != 0) run_into(name, ufunc, types.compute, arguments, *out);
  return *out;
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

#define RENSA_DEFINE_1(name)                                             \
  Array name(const Array& a) {                                           \
    return rensa::detail::elementwise(#name, Ufunc::name, {a}, nullptr); \
  }
#define RENSA_BINARY(name, A, B) \
  Array name(A a, B b) { return rensa::detail::elementwise(#name, Ufunc::name, {a, b}, nullptr); }
#define RENSA_DEFINE_2(name)                     \
  RENSA_BINARY(name, const Array&, const Array&) \
  RENSA_BINARY(name, const Array&, Scalar)       \
  RENSA_BINARY(name, Scalar, const Array&)
#define RENSA_TERNARY(name, B, C)                                              \
  Array name(const Array& a, B b, C c) {                                       \
    return rensa::detail::elementwise(#name, Ufunc::name, {a, b, c}, nullptr); \
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
#undef RENSA_OPERATOR

Array operator-(const Array& a) { return xp::negative(a); }

Array operator~(const Array& a) {
  detail::check_defined("invert", a);
  switch (dtype_kind(a.dtype())) {
    case 'b': return detail::elementwise("invert", Ufunc::logical_not, {a}, nullptr);
    case 'i': return detail::elementwise("invert", Ufunc::bitwise_xor, {a, Scalar(-1)}, nullptr);
    case 'u': {
      std::uint64_t ones = ~std::uint64_t{0} >> (64 - 8 * itemsize(a.dtype()));
      return detail::elementwise("invert", Ufunc::bitwise_xor, {a, Scalar(ones)}, nullptr);
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
#undef RENSA_INPLACE

}  // namespace rensa

// Making arrays and views, and the checks in front of a launch.
#include "rensa/array/internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/tracer.h"
#include "rensa/operations/copy_parts/copy_parts.h"
#include "rensa/operations/elementwise/elementwise.h"

namespace rensa::detail {

namespace {

std::int64_t checked_nbytes(const Shape& shape, Dtype dtype) {
  std::int64_t nbytes = itemsize(dtype);
  bool overflow = false, zero = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw ShapeError(fmt::format("empty: shape {} has a negative extent", shape.str()));
    }
    zero |= extent == 0;
    overflow |= __builtin_mul_overflow(nbytes, extent, &nbytes);
  }
  if (zero) return 0;
  if (overflow) {
    throw OutOfMemoryError(
        fmt::format("empty: an array of shape {} and dtype {} has more bytes "
                    "than an address can count",
                    shape.str(), dtype_name(dtype)));
  }
  return nbytes;
}

}  // namespace

Array on_host(const char* operation, const Array& a) {
  check_defined(operation, a);
  read_on_host(operation);
  return a.to(cpu()).ascontiguous();
}

Array new_array(const Shape& shape, Dtype dtype, Device device) {
  std::int64_t nbytes = checked_nbytes(shape, dtype);
  StoragePtr storage =
      current_tracer ? current_tracer->allocate(nbytes, device) : allocate(nbytes, device);
  return Array(std::move(storage), shape, dtype, device);
}

Array new_pinned_array(const Shape& shape, Dtype dtype) {
  return Array(allocate_pinned(checked_nbytes(shape, dtype)), shape, dtype, cpu());
}

Array new_view(const Array& a, std::int64_t offset, const Shape& shape, const Shape& strides) {
  return Array(a, a.view().data + offset, shape, strides);
}

Array slice_along(const Array& a, int axis, std::int64_t start, std::int64_t count,
                  std::int64_t step) {
  Shape shape = a.shape(), strides = a.strides();
  std::int64_t offset = count > 0 ? start * strides[axis] : 0;
  shape[axis] = count;
  strides[axis] = wrapping_multiply(strides[axis], step);
  return new_view(a, offset, shape, strides);
}

Array diagonal_view(const Array& a, std::int64_t k) {
  int row = a.ndim() - 2, column = a.ndim() - 1;
  Shape shape = a.shape(), strides = a.strides();
  std::int64_t rows = shape[row], columns = shape[column];
  std::int64_t length = k >= 0 ? std::min(rows, columns - std::min(k, columns))
                               : std::min(rows + std::max(k, -rows), columns);
  std::int64_t offset = length <= 0 ? 0 : k >= 0 ? k * strides[column] : -k * strides[row];
  shape[row] = length;
  strides[row] += strides[column];
  shape.erase(column);
  strides.erase(column);
  return new_view(a, offset, shape, strides);
}

void check_defined(const char* operation, const Array& a) {
  if (a.defined()) return;
  throw ValueError(
      fmt::format("{}: an operand is not an array (it was default-constructed and "
                  "never assigned)",
                  operation));
}

void check_bool_mask(const char* operation, const Array& mask) {
  check_defined(operation, mask);
  if (mask.dtype() == bool_) return;
  throw DtypeError(fmt::format("{}: where takes bool, not {}", operation, mask.view().describe()));
}

void check_mask(const char* operation, const Array& mask, const Array& a) {
  check_bool_mask(operation, mask);
  if (broadcast_shapes(operation, mask.shape(), a.shape()) == a.shape()) return;
  throw ShapeError(fmt::format("{}: the mask {} does not broadcast to {}", operation,
                               mask.view().describe(), a.view().describe()));
}

void check_writable(const char* operation, const Array& out) {
  const ArrayView& view = out.view();
  for (int i = 0; i < view.ndim(); ++i) {
    if (view.strides[i] != 0 || view.shape[i] <= 1) continue;
    throw ValueError(
        fmt::format("{}: cannot write into {}: it is a broadcast view, one element "
                    "standing at many places; copy() it first",
                    operation, view.describe()));
  }
}

void check_destination(const char* operation, const Array& beside, const Array& out) {
  check_defined(operation, out);
  check_same_device(operation, beside, out);
  check_writable(operation, out);
}

void check_same_kind(const char* operation, Dtype from, const Array& out) {
  if (can_cast_same_kind(from, out.dtype())) return;
  throw DtypeError(fmt::format(
      "{}: cannot write {} into {} {} {}: the kind would be lost; cast "
      "with astype",
      operation, dtype_name(from), dtype_name(out.dtype()), out.shape().str(), out.device().str()));
}

void check_casting(const char* operation, Dtype from, Dtype to, std::string_view casting) {
  bool allowed = casting == "unsafe";
  if (casting == "no" || casting == "equiv") allowed = from == to;
  else if (casting == "safe") allowed = promote_types(from, to) == to;
  else if (casting == "same_kind") allowed = can_cast_same_kind(from, to);
  else if (!allowed) {
    throw ValueError(
        fmt::format("{}: casting is \"{}\"; it has to be \"no\", \"equiv\", \"safe\", "
                    "\"same_kind\" or \"unsafe\"",
                    operation, casting));
  }
  if (allowed) return;
  throw DtypeError(
      fmt::format("{}: {} cannot be cast to {} under the rule \"{}\"; cast with astype", operation,
                  dtype_name(from), dtype_name(to), casting));
}

Array deliver(const char* operation, const Array& result, const ArrayOption& out,
              std::string_view casting) {
  if (!out) return result;
  check_destination(operation, result, *out);
  check_casting(operation, result.dtype(), (*out).dtype(), casting);
  if ((*out).shape() != result.shape()) {
    throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", operation,
                                 result.shape().str(), (*out).view().describe()));
  }
  bool shares =
      result.storage() == (*out).storage() && partly_overlap(result.view(), (*out).view());
  copy_elements(operation, shares ? result.copy() : result, *out);
  return *out;
}

bool is_out_of_range(Scalar value, Dtype dtype) {
  char kind = dtype_kind(dtype);
  if (!value.is_integral() || (kind != 'i' && kind != 'u')) return false;
  std::int64_t v = value.integer();
  bool above_int64 = value.kind() == 'u' && v < 0;
  int bits = static_cast<int>(itemsize(dtype)) * 8;
  if (kind == 'u') {
    if (above_int64) return bits < 64;
    return v < 0 || (bits < 64 && (v >> bits) != 0);
  }
  if (above_int64) return true;
  return bits < 64 && (v >> (bits - 1)) != 0 && (v >> (bits - 1)) != -1;
}

void check_in_range(const char* operation, Scalar value, Dtype dtype) {
  if (!is_out_of_range(value, dtype)) return;
  std::string text = value.kind() == 'u'
                         ? fmt::format("{}", static_cast<std::uint64_t>(value.integer()))
                         : fmt::format("{}", value.integer());
  throw ValueError(
      fmt::format("{}: the number {} is out of bounds for {}; cast the array with "
                  "astype first",
                  operation, text, dtype_name(dtype)));
}

namespace {

/// Whether elements of the two lie between each other, as real and imaginary parts do: all their
/// strides are multiples of one distance, and modulo that their elements lie apart.
bool are_interleaved(const ArrayView& a, const ArrayView& b) {
  std::int64_t distance = 0;
  for (const ArrayView* view : {&a, &b}) {
    for (int axis = 0; axis < view->ndim(); ++axis) {
      if (view->shape[axis] > 1) distance = std::gcd(distance, view->strides[axis]);
    }
  }
  if (distance == 0) return false;
  std::int64_t between = (b.data - a.data) % distance;  // from an element of a to one of b
  if (between < 0) between += distance;
  return between >= itemsize(a.dtype) && between + itemsize(b.dtype) <= distance;
}

}  // namespace

bool partly_overlap(const ArrayView& a, const ArrayView& b) {
  std::int64_t a_begin, a_end, b_begin, b_end;
  a.byte_range(&a_begin, &a_end);
  b.byte_range(&b_begin, &b_end);
  if (a.data + a_begin >= b.data + b_end || b.data + b_begin >= a.data + a_end) return false;
  return !same_view(a, b) && !are_interleaved(a, b);
}

void copy_elements(const char* operation, const Array& in, const Array& out) {
  if (out.size() == 0) return;
  operations::Elementwise op(operation, ufunc::copy);
  op.compute = in.dtype();
  op.num_inputs = 1;
  op.in[0].array = in.operand();
  if (in.shape() != out.shape()) op.in[0].array.view = broadcast_view(in.view(), out.shape());
  op.out = out.operand();
  ArrayView* views[] = {&op.out.view, &op.in[0].array.view};
  order_axes_by_output(views);
  launch(op);
}

void copy_parts(const char* operation, const std::vector<CopyPair>& parts) {
  operations::CopyParts op(operation);
  const CopyPair* last = nullptr;
  for (const CopyPair& part : parts) {
    if (part.out.size() == 0) continue;
    if (part.in.dtype() == part.out.dtype()) {
      op.parts.push_back({part.in.operand(), part.out.operand()});
      last = &part;
    } else {
      copy_elements(operation, part.in, part.out);
    }
  }
  if (last && op.parts.size() == 1) copy_elements(operation, last->in, last->out);
  else if (op.parts.size() > 1) launch(op);
}

namespace {

// A number of floating kind as an integer dtype takes it: what lies beyond its range, and NaN,
// becomes what NumPy's conversion makes of it on a common processor (through 32 or 64 bits, of
// which the least number stands for all those).
Scalar fitted(Scalar value, Dtype dtype) {
  char kind = dtype_kind(dtype);
  if (value.kind() != 'f' || (kind != 'i' && kind != 'u')) return value;
  double x = std::trunc(value.real());
  bool narrow = itemsize(dtype) < 4 || dtype == int32;
  double limit = narrow ? 0x1p31 : 0x1p63;
  if (-limit <= x && x < limit) return value;
  if (dtype == uint64 && limit <= x) return x < 0x1p64 ? static_cast<std::uint64_t>(x) : 0ull;
  if (narrow) return std::numeric_limits<std::int32_t>::min();
  return std::numeric_limits<std::int64_t>::min();
}

}  // namespace

void fill_elements(const char* operation, const Array& out, Scalar value) {
  if (out.size() == 0) return;
  operations::Elementwise op(operation, ufunc::copy);
  op.compute = out.dtype();
  op.num_inputs = 1;
  op.in[0].scalar = fitted(value, out.dtype());
  op.out = out.operand();
  ArrayView* views[] = {&op.out.view};
  order_axes_by_output(views);
  launch(op);
}

}  // namespace rensa::detail

// What the files of array/ share: making arrays and views, and the checks in front of a launch.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "rensa/array/routines.h"
#include "rensa/core/reductions.h"
#include "rensa/core/ufunc_info.h"

namespace rensa::detail {

/// The array's elements in host memory, in C order, for `operation` to read: `a` itself where it
/// lies so. Waits. Throws ValueError for an undefined array, NotImplementedError in a function that
/// is being fused.
Array on_host(const char* operation, const Array& a);

/// xp::matmul of matrices (m, k) and (k, n), of whose product relu's gradient is likely to be taken
/// next: Matmul::gate_follows.
Array matmul_before_gate(const Array& a, const Array& b);

/// An uninitialized C-contiguous array. Throws ShapeError for a negative extent, OutOfMemoryError
/// for a size that no memory has.
Array new_array(const Shape& shape, Dtype dtype, Device device);

/// How the axes of a new array lie in memory. Its elements are written into a C-contiguous array of
/// the shape permuted(shape), the slowest axis first, which restored() shows with the axes in their
/// places: what writes them is the same for every order, also where it is traced.
class MemoryOrder {
 public:
  /// Of `ndim` axes in the order 'C' or 'F'. Throws ValueError naming `operation` for others.
  MemoryOrder(const char* operation, Order order, int ndim);
  /// May take after `model`.
  MemoryOrder(const Array& model, Order order);
  /// 'K' of several of one shape, as NumPy has it: two axes change places where at least one of
  /// `models` has them in the other order and none in this one. Those of one element, and
  /// broadcast ones, do not tell.
  explicit MemoryOrder(std::span<const ArrayView> models);
  Shape permuted(const Shape& shape) const;
  Array permuted(const Array& a) const;
  Array restored(const Array& plain) const;
  /// From the slowest to the fastest; empty for C order.
  const Shape& axes() const { return axes_; }

 private:
  Shape axes_;
};

/// Whether the elements of `a` lie together, with the axes in the order in which those of `model`,
/// which is of its shape, lie in memory.
bool lies_as(const Array& a, const Array& model);
inline bool is_dense(const Array& a) { return lies_as(a, a); }
/// `a`, or a copy that lies_as() `model`.
Array dense_as(const Array& a, const Array& model);
inline Array dense(const Array& a) { return dense_as(a, a); }

/// `parts`, one or more, as one array along `axis`, where they lie side by side in one memory: a
/// view, nothing is copied. Nothing where they do not.
std::optional<Array> joined_in_place(std::span<const Array> parts, int axis);

/// A new array of `shape`, to which `operands` broadcast, that lies as they do (`order` "K" of
/// them): what an elementwise operation gives.
Array new_array_beside(std::span<const Array* const> operands, const Shape& shape, Dtype dtype,
                       Device device);

/// Puts the axes of an elementwise operation's views into the order in which `out`, the first of
/// them, lies in memory: what joins operations into kernels knows results in C order.
void order_axes_by_output(std::span<ArrayView* const> views);

/// As new_array, in page-locked host memory.
Array new_pinned_array(const Shape& shape, Dtype dtype);

/// xp::wrap; with `read_only` of memory that launch() lets no operation write.
Array wrap(void* data, const Shape& shape, const Shape& strides, Dtype dtype, Device device,
           std::shared_ptr<void> owner, bool read_only);
Array wrap(void* data, const Shape& shape, Dtype dtype, Device device, std::shared_ptr<void> owner,
           bool read_only);

/// Other elements of `a`'s storage: `offset` bytes from its first one.
Array new_view(const Array& a, std::int64_t offset, const Shape& shape, const Shape& strides);

/// `count` sub-arrays along `axis` (not negative), from `start` on, `step` apart: a view.
Array slice_along(const Array& a, int axis, std::int64_t start, std::int64_t count,
                  std::int64_t step = 1);

/// Diagonal k (k > 0: above the main one) of the last two axes, as the last axis: a view.
Array diagonal_view(const Array& a, std::int64_t k);

/// What an operation along one axis works on: `a` and the axis, or `a` flattened and 0 for `none`.
std::pair<Array, int> working_axis(const char* operation, const Array& a, OptionalAxis axis);

/// Throws ValueError naming `operation` unless `a` is an array.
void check_defined(const char* operation, const Array& a);

/// Throws ValueError naming `operation` where one element of `out` stands at several places (a
/// broadcast view), which cannot be written.
void check_writable(const char* operation, const Array& out);

/// What `out` has to be whatever goes there: defined, on `beside`'s device (DeviceError) and
/// writable.
void check_destination(const char* operation, const Array& beside, const Array& out);

/// Throws DtypeError naming `operation` unless `from` can be cast to `out`'s dtype with
/// "same_kind".
void check_same_kind(const char* operation, Dtype from, const Array& out);

/// Throws DtypeError naming `operation` unless `from` can be cast to `to` with `casting`, one of
/// NumPy's words ("no", "equiv", "safe", "same_kind", "unsafe"); ValueError for another word.
void check_casting(const char* operation, Dtype from, Dtype to, std::string_view casting);

/// `result`, or `out` with its values where that is given: of its shape (ShapeError), converted by
/// `casting`.
Array deliver(const char* operation, const Array& result, const ArrayOption& out,
              std::string_view casting = "same_kind");

/// product(x, y) with NumPy's keywords: of `a` and `b` cast and turned as `options` says, the last
/// cores[i] axes of each operand and of the result being those that options.axes names.
Array product_with(const char* operation, const Array& a, const Array& b, std::array<int, 3> cores,
                   const xp::MatmulOptions& options, Array (*product)(const Array&, const Array&));

/// Throws DtypeError naming `operation` unless `mask` is bool.
void check_bool_mask(const char* operation, const Array& mask);

/// check_bool_mask; throws ShapeError too unless the mask broadcasts to a's shape.
void check_mask(const char* operation, const Array& mask, const Array& a);

/// Whether an integer number lies outside of an integer dtype.
bool is_out_of_range(Scalar value, Dtype dtype);

/// Throws ValueError naming `operation` when is_out_of_range.
void check_in_range(const char* operation, Scalar value, Dtype dtype);

/// Whether the two may share memory without being the same elements at the same places, so that a
/// kernel must not read one while it writes the other. False where they are apart, or where single
/// elements of the one lie between those of the other, as real and imaginary parts do.
bool partly_overlap(const ArrayView& a, const ArrayView& b);

/// out[i] = in[i], converted in whatever way; `in` broadcasts to out's shape. No launch for
/// nothing.
void copy_elements(const char* operation, const Array& in, const Array& out);

/// An array and where it goes, of one shape.
struct CopyPair {
  Array in, out;
};
/// copy_elements of every pair, no `in` sharing memory with an `out`; small ones of equal dtype
/// together. No launch for nothing.
void copy_parts(const char* operation, const std::vector<CopyPair>& parts);

// Between devices and the host (array/array_transfer.cc): Array's methods of these names.
Array to(const Array& a, Device device);
Array copy(const Array& a, Device device);
Array get(const Array& a);
void get(const Array& a, const Array& out, const cuda::Stream& stream);
Scalar item(const Array& a);
/// a.to_vector(): all elements, converted, into `out`.
void copy_to_host(const Array& a, Dtype dtype, void* out);

/// out[i] = value, converted in whatever way.
void fill_elements(const char* operation, const Array& out, Scalar value);

/// xp::elementwise under another name in errors and timelines.
Array elementwise(const char* name, Ufunc ufunc,
                  std::initializer_list<xp::ElementwiseArgument> arguments, const Array* out);

Array elementwise(const char* name, Ufunc ufunc,
                  std::initializer_list<xp::ElementwiseArgument> arguments,
                  const xp::UfuncOptions& options);

/// `reduction` of `a` over the axes whose bit is set, which stay with extent 1; computed in `dtype`
/// where it is given.
Array reduce_axes(Reduction reduction, const Array& a, unsigned axes,
                  std::optional<Dtype> dtype = {});

}  // namespace rensa::detail

// Routines that reshape, join, split and rearrange arrays. What is called a view shares its
// argument's memory; everything else is new. None waits for the device unless it says so.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/array.h"

namespace rensa {

/// An axis, or `none`: the flattened array.
class OptionalAxis {
 public:
  OptionalAxis(None) {}
  OptionalAxis(int axis) : axis_(axis), given_(true) {}
  bool given() const { return given_; }  // whether it is an axis
  int axis() const { return axis_; }     // where one is given

 private:
  int axis_ = 0;
  bool given_ = false;
};

/// Arrays: {a, b}, or a std::vector or span of them, for the length of the call.
class ArrayList {
 public:
  ArrayList(std::initializer_list<Array> arrays) : arrays_(arrays.begin(), arrays.size()) {}
  template <class V>
  requires std::convertible_to<const V&, std::span<const Array>> ArrayList(const V& arrays)
      : arrays_(arrays) {}
  operator std::span<const Array>() const { return arrays_; }

 private:
  std::span<const Array> arrays_;
};

}  // namespace rensa

namespace rensa::xp {

// --- shapes and axes: views ---
int ndim(const Array& a);           // the number of axes
Shape shape(const Array& a);        // the extents
std::int64_t size(const Array& a);  // the number of elements, or an axis's extent
std::int64_t size(const Array& a, int axis);

/// Copies where strides do not allow a view, unless told otherwise.
[[nodiscard]] Array reshape(const Array& a, const Shape& shape);
[[nodiscard]] Array reshape(const Array& a, const Shape& shape, const ReshapeOptions& options);
template <std::integral... N>
requires(sizeof...(N) > 1) auto reshape(const Array& a, N...) {
  static_assert(rensa::detail::kWrong<N...>,
                "a shape is one argument: write xp::reshape(a, {3, 2})");
  return a;
}
[[nodiscard]] Array ravel(const Array& a);  // likewise
[[nodiscard]] Array ravel(const Array& a, Order order);
[[nodiscard]] Array transpose(const Array& a);  // the axes reversed, or in the order `axes`
[[nodiscard]] Array transpose(const Array& a, const Shape& axes);
/// The axes in the order `axes`.
[[nodiscard]] Array permute_dims(const Array& a, const Shape& axes);
/// The last two axes exchanged. Throws ShapeError for fewer than two.
[[nodiscard]] Array matrix_transpose(const Array& a);
/// The two axes exchanged. Throws IndexError.
[[nodiscard]] Array swapaxes(const Array& a, int axis1, int axis2);
/// Axis `source` moved to `destination`, the others in their order. Throws IndexError.
[[nodiscard]] Array moveaxis(const Array& a, int source, int destination);
[[nodiscard]] Array moveaxis(const Array& a, const Shape& source, const Shape& destination);
/// Axis `axis` moved in front of axis `start`.
[[nodiscard]] Array rollaxis(const Array& a, int axis, int start = 0);
[[nodiscard]] Array atleast_1d(const Array& a);  // a view of at least one axis
[[nodiscard]] Array atleast_2d(const Array& a);  // a view of at least two axes: new ones in front
/// A view of at least three axes: new ones at both sides.
[[nodiscard]] Array atleast_3d(const Array& a);
[[nodiscard]] std::vector<Array> atleast_1d(std::span<const Array> arrays);
[[nodiscard]] std::vector<Array> atleast_2d(std::span<const Array> arrays);
[[nodiscard]] std::vector<Array> atleast_3d(std::span<const Array> arrays);
[[nodiscard]] Array expand_dims(const Array& a, int axis);
[[nodiscard]] Array expand_dims(const Array& a, const Shape& axes);  // places in the result
/// Without axes of extent 1, or without those. Throws ShapeError where one is longer.
[[nodiscard]] Array squeeze(const Array& a);
[[nodiscard]] Array squeeze(const Array& a, int axis);
[[nodiscard]] Array squeeze(const Array& a, const Shape& axes);

/// `a` in a shape that it broadcasts to: a view. Throws ShapeError.
[[nodiscard]] Array broadcast_to(const Array& a, const Shape& shape);
/// The arrays in the shape that all broadcast to: views. Throws ShapeError.
[[nodiscard]] std::vector<Array> broadcast_arrays(const ArrayList& arrays);
/// The shape that shapes broadcast to. Throws ShapeError.
Shape broadcast_shapes(std::span<const Shape> shapes);
Shape broadcast_shapes(std::initializer_list<Shape> shapes);
/// numpy.broadcast: the common shape and the arrays as views of it.
class broadcast {
 public:
  explicit broadcast(const ArrayList& arrays);
  broadcast(std::initializer_list<Array> arrays) : broadcast(ArrayList(arrays)) {}
  const Shape& shape() const { return shape_; }         // the common one
  int ndim() const { return shape_.ndim(); }            // axes of the common shape
  int nd() const { return shape_.ndim(); }              // the same
  std::int64_t size() const { return shape_.total(); }  // elements of the common shape
  /// The views, in the order of the arrays.
  const std::vector<Array>& values() const { return values_; }

 private:
  Shape shape_;
  std::vector<Array> values_;
};

/// Whether `a` is Fortran-contiguous and not C-contiguous.
bool isfortran(const Array& a);
/// A Fortran-contiguous array of the same values, of `dtype` where it is given; `a` itself where it
/// is one.
[[nodiscard]] Array asfortranarray(const Array& a, std::optional<Dtype> dtype = {});

// --- joining ---
/// Where arrays are joined, and how the result is stored: into `out`, or as `dtype`; not both.
/// `casting` is "no", "equiv", "safe", "same_kind" or "unsafe".
struct JoinOptions {
  rensa::detail::NamedOptions named = {};
  OptionalAxis axis = 0;
  ArrayOption out = {};
  std::optional<Dtype> dtype = {};
  std::string_view casting = "same_kind";
};
/// The keywords of vstack and hstack, whose axis is said by their names.
struct StackOptions {
  rensa::detail::NamedOptions named = {};
  std::optional<Dtype> dtype = {};         // as of JoinOptions
  std::string_view casting = "same_kind";  // of the arrays to `dtype`
};
// concatenate({a, b}), concatenate({a, b}, 1), concatenate({a, b}, {.axis = 1, .dtype = float64}).
#define RENSA_DECLARE_JOIN(name)                                                    \
  Array name(const ArrayList& arrays, const JoinOptions& options = {});             \
  template <class T>                                                                \
  requires std::convertible_to<T, OptionalAxis> Array name(const ArrayList& arrays, \
                                                           const T& axis) {         \
    return name(arrays, JoinOptions{.axis = axis});                                 \
  }
/// Arrays joined along an axis, `none`: each flattened first. One launch per array. Throws
/// ShapeError where other axes differ, DtypeError where the cast is not allowed.
RENSA_DECLARE_JOIN(concatenate)
RENSA_DECLARE_JOIN(concat)
/// Arrays of one shape along a new axis.
RENSA_DECLARE_JOIN(stack)
#undef RENSA_DECLARE_JOIN
/// Arrays joined along their first axis; 1-d ones are rows. Throws as concatenate does.
[[nodiscard]] Array vstack(const ArrayList& arrays, const StackOptions& options = {});
/// Arrays joined along their second axis, 1-d ones along the only one. Throws as concatenate does.
[[nodiscard]] Array hstack(const ArrayList& arrays, const StackOptions& options = {});
/// Arrays joined along a third axis. Throws as concatenate does.
[[nodiscard]] Array dstack(const ArrayList& arrays);
/// 1-d arrays as columns beside the columns of 2-d ones.
[[nodiscard]] Array column_stack(const ArrayList& arrays);
/// `values` behind `a`; `none` flattens both.
[[nodiscard]] Array append(const Array& a, const Array& values, OptionalAxis axis = none);

// --- splitting: views ---
/// A number of equal parts (ShapeError where they do not come out), or parts cut at indices:
/// split(a, 3), split(a, {2, 5}).
[[nodiscard]] std::vector<Array> split(const Array& a, const IntegerList& sections_or_indices,
                                       int axis = 0);
/// As split; the first parts are longer by one where the number does not divide the extent.
[[nodiscard]] std::vector<Array> array_split(const Array& a, const IntegerList& sections_or_indices,
                                             int axis = 0);
[[nodiscard]] std::vector<Array> hsplit(const Array& a, const IntegerList& sections_or_indices);
[[nodiscard]] std::vector<Array> vsplit(const Array& a, const IntegerList& sections_or_indices);
[[nodiscard]] std::vector<Array> dsplit(const Array& a, const IntegerList& sections_or_indices);
/// The sub-arrays along an axis, which falls away.
[[nodiscard]] std::vector<Array> unstack(const Array& a, int axis = 0);

// --- repeating and turning ---
/// `a` repeated as a whole, `repetitions` times along each axis.
[[nodiscard]] Array tile(const Array& a, const Shape& repetitions);
[[nodiscard]] Array tile(const Array& a, std::int64_t repetitions);
/// Each element, or sub-array along `axis`, `repeats` times; of a list of them element i repeats[i]
/// times.
[[nodiscard]] Array repeat(const Array& a, const IntegerList& repeats, OptionalAxis axis = none);
/// Waits for the device: the counts decide on the shape.
[[nodiscard]] Array repeat(const Array& a, const Array& counts, OptionalAxis axis = none);
/// `a` backwards along the axes, all when left out: a view.
[[nodiscard]] Array flip(const Array& a, Axes axis = {});
[[nodiscard]] Array fliplr(const Array& a);
[[nodiscard]] Array flipud(const Array& a);
/// Elements shifted in a circle; without an axis those of the flattened array.
[[nodiscard]] Array roll(const Array& a, std::int64_t shift);
[[nodiscard]] Array roll(const Array& a, std::int64_t shift, int axis);
[[nodiscard]] Array roll(const Array& a, const Shape& shifts, const Shape& axes);
/// k quarter turns from the first of the two axes to the second: a view.
[[nodiscard]] Array rot90(const Array& a, std::int64_t k = 1, const Shape& axes = {0, 1});
/// The elements of `a` in a new shape, repeated, or cut off, as often as it takes.
[[nodiscard]] Array resize(const Array& a, const Shape& shape);

// --- removing and inserting ---
/// numpy.delete: `a` without the sub-arrays at an index, a slice or a list of indices (which may
/// name one twice). Throws IndexError.
[[nodiscard]] Array delete_(const Array& a, std::int64_t index, OptionalAxis axis = none);
[[nodiscard]] Array delete_(const Array& a, const Slice& slice, OptionalAxis axis = none);
[[nodiscard]] Array delete_(const Array& a, std::span<const std::int64_t> indices,
                            OptionalAxis axis = none);
[[nodiscard]] Array delete_(const Array& a, std::initializer_list<std::int64_t> indices,
                            OptionalAxis axis = none);
/// Indices, or a mask, in an array. Waits for the device.
[[nodiscard]] Array delete_(const Array& a, const Array& indices, OptionalAxis axis = none);
/// `values`, broadcast and converted, in front of an index of `a`, or one each in front of several.
[[nodiscard]] Array insert(const Array& a, const IntegerList& indices, const Array& values,
                           OptionalAxis axis = none);
/// Without the zeros at the front ('f' in `trim`) and the back ('b') of every axis, or of one: a
/// view. Waits for the device.
[[nodiscard]] Array trim_zeros(const Array& a, std::string_view trim = "fb",
                               OptionalAxis axis = none);

// --- padding ---
/// Two numbers for each axis: one for all sides, (before, after) for all axes, or one pair per
/// axis.
template <class T> class PadPairs {
 public:
  PadPairs(T both);
  template <std::convertible_to<T> U> PadPairs(U both) : PadPairs(static_cast<T>(both)) {}
  PadPairs(T before, T after);
  PadPairs(std::pair<T, T> all);
  PadPairs(std::initializer_list<std::pair<T, T>> pairs);
  PadPairs(std::vector<std::pair<T, T>> pairs) : pairs_(std::move(pairs)) {}
  /// One for all axes, or one per axis.
  const std::vector<std::pair<T, T>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<T, T>> pairs_;
};
// Made once, in manipulation_pad.cc.
extern template class PadPairs<Scalar>;
extern template class PadPairs<std::int64_t>;
/// Elements that pad puts in front of each axis and behind it.
using PadWidth = PadPairs<std::int64_t>;
/// The keywords of pad.
struct PadOptions {
  PadPairs<Scalar> constant_values = Scalar(0);  // of "constant"
  PadPairs<Scalar> end_values = Scalar(0);       // of "linear_ramp"
  /// Of "maximum", "mean", "minimum": the elements at each end that count, all when left out.
  std::optional<PadPairs<std::int64_t>> stat_length = {};
  bool odd = false;  // "reflect" and "symmetric": reflect_type="odd", mirrored in the edge value
};
/// `a` with a border. Modes: "constant", "edge", "empty", "linear_ramp", "maximum", "mean",
/// "minimum", "reflect", "symmetric", "wrap". Throws ValueError for another mode, negative widths,
/// or values of nothing.
[[nodiscard]] Array pad(const Array& a, const PadWidth& width, std::string_view mode = "constant",
                        const PadOptions& options = {});

// --- copying and memory ---
/// Writes `source`, broadcast, into `destination`, where `where` (a bool array, broadcast) is true.
/// Throws DtypeError where `casting` does not allow the cast.
void copyto(const Array& destination, const Array& source, std::string_view casting = "same_kind",
            const Array& where = {});
void copyto(const Array& destination, Scalar source, std::string_view casting = "same_kind",
            const Array& where = {});
/// The first byte of the elements' memory and the one behind the last.
std::pair<const char*, const char*> byte_bounds(const Array& a);
/// Whether two arrays' memory ranges overlap; shares_memory says whether an element does.
bool may_share_memory(const Array& a, const Array& b);
bool shares_memory(const Array& a, const Array& b);

/// `a` summed to `shape`, the reverse of broadcasting.
[[nodiscard]] Array sum_to(const Array& a, const Shape& shape);

namespace lib::stride_tricks {
/// A view of `a`'s memory with any shape and strides (in bytes). Unlike NumPy's it throws
/// ShapeError where an element would lie outside of that memory.
[[nodiscard]] Array as_strided(const Array& a, const Shape& shape, const Shape& strides);
/// All windows of a shape over the axes, all axes when left out; the windows' axes come last. A
/// view. Throws ShapeError.
[[nodiscard]] Array sliding_window_view(const Array& a, const Shape& window);
[[nodiscard]] Array sliding_window_view(const Array& a, const Shape& window, const Shape& axes);
[[nodiscard]] Array sliding_window_view(const Array& a, std::int64_t window, int axis);
}  // namespace lib::stride_tricks

}  // namespace rensa::xp

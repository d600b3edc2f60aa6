// ArrayMethods: what an Array and a Selection can do without being written to.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rensa/array/index.h"
#include "rensa/array/options.h"
#include "rensa/core/array_view.h"
#include "rensa/core/host_memory.h"
#include "rensa/core/scalar.h"
#include "rensa/device/stream.h"

namespace rensa {

class Array;
class FirstAxisIterator;

/// The methods that read an array: those of an Array, and those of a Selection, which is gathered
/// for them. Bodies that give an Array come behind it (array/array.h, array/array_methods.cc).
template <class Self> class ArrayMethods {
 public:
  // --- what it is ---
  /// Whether this is an array at all (not whether it is non-zero).
  bool defined() const { return static_cast<bool>(array().storage()); }
  const Shape& shape() const { return array().view().shape; }
  std::int64_t shape(int axis) const;  // throws IndexError; negative axes count from the end
  const Shape& strides() const { return array().view().strides; }  // bytes
  int ndim() const { return array().view().ndim(); }
  std::int64_t size() const { return array().view().size(); }
  std::int64_t nbytes() const { return array().view().nbytes(); }     // of all elements
  std::int64_t itemsize() const { return rensa::itemsize(dtype()); }  // bytes of an element
  Dtype dtype() const { return array().view().dtype; }                // of the elements
  Device device() const { return array().view().device; }             // where the memory is
  /// Whether the elements lie in C order without gaps.
  bool is_contiguous() const { return array().view().is_c_contiguous(); }
  /// The first element's address, on the array's device.
  void* data() const { return array().view().data; }

  // --- views: no copy, shared storage (reshape copies where strides do not allow a view) ---
  [[nodiscard]] Array reshape(const Shape& shape) const;  // one extent may be -1
  template <std::integral... N>
  requires(sizeof...(N) > 1) [[nodiscard]] Array reshape(N... extents) const;
  [[nodiscard]] Array reshape(const Shape& shape, const xp::ReshapeOptions& options) const;
  [[nodiscard]] Array transpose() const;  // axes reversed
  [[nodiscard]] Array transpose(const Shape& axes) const;
  template <std::integral... N>
  requires(sizeof...(N) > 1) [[nodiscard]] Array transpose(N... axes) const;
  [[nodiscard]] Array T() const;                     // all axes reversed: transpose()
  [[nodiscard]] Array swapaxes(int a, int b) const;  // the two axes exchanged
  /// Without axes of extent 1, or without those. Throws ShapeError where one is longer.
  [[nodiscard]] Array squeeze() const;
  [[nodiscard]] Array squeeze(int axis) const;
  [[nodiscard]] Array squeeze(const Shape& axes) const;
  [[nodiscard]] Array expand_dims(int axis) const;
  [[nodiscard]] Array ravel() const;             // a copy unless contiguous
  [[nodiscard]] Array ravel(Order order) const;  // the elements in that order
  /// A view of that shape, with stride 0 where an extent of 1 is repeated. Throws ShapeError.
  [[nodiscard]] Array broadcast_to(const Shape& shape) const;

  // --- copies ---
  [[nodiscard]] Array copy() const;  // C-contiguous, same device
  [[nodiscard]] Array copy(Order order) const;
  /// A new array on `device`, also where this one is there already. Waits as to() does.
  [[nodiscard]] Array copy(Device device) const;
  [[nodiscard]] Array astype(Dtype dtype) const;
  [[nodiscard]] Array astype(Dtype dtype, Order order) const;
  /// copy = false: this array when it has the dtype.
  template <std::same_as<bool> B> [[nodiscard]] Array astype(Dtype dtype, B copy) const;
  /// Throws DtypeError where `casting` does not allow the cast.
  [[nodiscard]] Array astype(Dtype dtype, const xp::AstypeOptions& options) const;
  template <std::convertible_to<std::string_view> T> auto astype(const T&) const {
    static_assert(
        detail::kWrong<T>,
        "a dtype is no text: write a.astype(float32), or parse_dtype(text) for the dtype");
    return array();
  }
  [[nodiscard]] Array ascontiguous() const;  // this array when it is C-contiguous
  /// This array on `device`: the same array, no copy, when it is there already, else a new one
  /// (xp::copyto writes into an array that there is). Waits (counted) towards the host, and towards
  /// a GPU from pageable memory of more than 64 MiB.
  [[nodiscard]] Array to(Device device) const;
  [[nodiscard]] Array to_cpu() const;
  [[nodiscard]] Array to_gpu() const;
  [[nodiscard]] Array to_gpu(int index) const;
  /// A new host array with the values; waits (counted). The form with `out` copies into it on
  /// `stream` and returns at once when `out` is pinned.
  [[nodiscard]] Array get() const;
  void get(const Array& out, const cuda::Stream& stream) const;

  // --- to the host: the calls that wait for the device ---
  /// The one element, converted. Waits (counted). Throws ShapeError unless size() == 1.
  template <class T = void> auto item() const {
    static_assert(!std::is_void_v<T>, "say the type: a.item<float>()");
    return item_scalar().template as<T>();
  }
  Scalar item_scalar() const;
  /// All elements in C order, converted to T. Waits (counted).
  template <class T = void> auto to_vector() const {
    static_assert(!std::is_void_v<T>, "say the type: a.to_vector<float>()");
    auto values = host_vector<T>("to_vector", size());
    if constexpr (std::same_as<T, bool>) {
      auto host = astype(Dtype::bool_).get();
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<const bool*>(host.data())[i];
      }
    } else {
      copy_to_host(dtype_of<T>, values.data());
    }
    return values;
  }
  /// As operator<< prints it: array_repr(), or the number of a 0-d array. Waits (counted).
  std::string str() const;

  // --- iteration over the first axis ---
  /// `for (Array row : a)`: the views a[0], a[1], ... Throws ShapeError for a 0-d array.
  FirstAxisIterator begin() const;
  FirstAxisIterator end() const;  // behind the last

  // --- the forms of options.h ---
  // a.sum(), a.sum(1), a.sum({0, 1}), a.sum(axes, keepdims), a.sum({.axis = 1, .dtype = float64})
  // (The list serves for the bodies in array.h too, which ends it.)
#define RENSA_AXIS_METHODS(FORMS, FORMS_AND_KEEPDIMS) \
  FORMS_AND_KEEPDIMS(sum, ReduceOptions)              \
  FORMS_AND_KEEPDIMS(prod, ReduceOptions)             \
  FORMS_AND_KEEPDIMS(mean, ReduceOptions)             \
  FORMS_AND_KEEPDIMS(max, ReduceOptions)              \
  FORMS_AND_KEEPDIMS(min, ReduceOptions)              \
  FORMS_AND_KEEPDIMS(any, ReduceOptions)              \
  FORMS_AND_KEEPDIMS(all, ReduceOptions)              \
  FORMS_AND_KEEPDIMS(argmax, AxisOptions)             \
  FORMS_AND_KEEPDIMS(argmin, AxisOptions)             \
  FORMS_AND_KEEPDIMS(ptp, AxisOptions)                \
  FORMS(var, VarianceOptions)                         \
  FORMS(std, VarianceOptions)                         \
  FORMS(cumsum, ScanOptions)                          \
  FORMS(cumprod, ScanOptions)                         \
  FORMS(argsort, SortOptions)
#define RENSA_FORMS(name, Options)                                         \
  [[nodiscard]] Array name() const;                                        \
  Array name(const xp::Options& options) const;                            \
  template <xp::AxisLike A> [[nodiscard]] Array name(const A& axis) const; \
  template <std::same_as<int> I> [[nodiscard]] Array name(std::initializer_list<I> axes) const;
#define RENSA_FORMS_AND_KEEPDIMS(name, Options) \
  RENSA_FORMS(name, Options)                    \
  [[nodiscard]] Array name(const Axes& axis, bool keepdims) const;
  RENSA_AXIS_METHODS(RENSA_FORMS, RENSA_FORMS_AND_KEEPDIMS)
#undef RENSA_FORMS
#undef RENSA_FORMS_AND_KEEPDIMS
  /// Xp::dot of this array and `other`.
  Array dot(const Array& other, const xp::ProductOptions& options = {}) const;

  // --- the routines of namespace xp of the same names ---
  [[nodiscard]] Array trace(std::int64_t offset = 0, int axis1 = 0, int axis2 = 1) const;
  Array trace(const xp::TraceOptions& options) const;
  [[nodiscard]] Array conj() const;
  [[nodiscard]] Array conjugate() const;  // the same
  [[nodiscard]] Array real() const;       // a view where this array is complex
  [[nodiscard]] Array imag() const;
  Array round(int decimals = 0, const xp::UfuncOptions& options = {}) const;
  Array clip(const Bound& least, const Bound& most = none,
             const xp::UfuncOptions& options = {}) const;
  [[nodiscard]] Array argpartition(const IntegerList& kth, const Axes& axis = -1) const;
  [[nodiscard]] Array searchsorted(const Array& values, std::string_view side = "left",
                                   ArrayOption sorter = {}) const;
  [[nodiscard]] std::vector<Array> nonzero() const;  // waits
  [[nodiscard]] Array take(const Array& indices) const;
  template <xp::AxisLike A> [[nodiscard]] Array take(const Array& indices, const A& axis) const;
  Array take(const Array& indices, const xp::TakeOptions& options) const;
  Array choose(std::span<const Array> choices, const xp::ChooseOptions& options = {}) const;
  Array choose(std::initializer_list<Array> choices, const xp::ChooseOptions& options = {}) const;
  [[nodiscard]] Array compress(const Array& condition) const;  // waits
  template <xp::AxisLike A>
  [[nodiscard]] Array compress(const Array& condition, const A& axis) const;
  Array compress(const Array& condition, const xp::CompressOptions& options) const;
  [[nodiscard]] Array repeat(const IntegerList& repeats) const;
  [[nodiscard]] Array repeat(const IntegerList& repeats, int axis) const;
  [[nodiscard]] Array diagonal(std::int64_t offset = 0, int axis1 = 0,
                               int axis2 = 1) const;  // a view
  [[nodiscard]] Array diagonal(const xp::DiagonalOptions& options) const;
  /// A flat copy, the elements in `order`.
  [[nodiscard]] Array flatten(Order order = 'C') const;
  /// The last two axes exchanged: a view.
  [[nodiscard]] Array mT() const;
  /// The same bytes as elements of `dtype`, a view. Where the sizes differ the last axis has to be
  /// contiguous; it grows or shrinks. Throws ShapeError.
  [[nodiscard]] Array view(Dtype dtype) const;
  /// The elements in C order. Waits.
  std::string tobytes() const;
  void tofile(const std::string& path) const;

 private:
  const Array& array() const { return static_cast<const Self&>(*this).self(); }
  Array as_dtype(Dtype dtype) const;
  void copy_to_host(Dtype dtype, void* out) const;
};

}  // namespace rensa

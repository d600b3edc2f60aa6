// Array: a handle to a strided view on shared storage. Copying it is cheap and shares; nothing is
// waited for but where a function says so.
#pragma once

#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/index.h"
#include "rensa/core/array_view.h"
#include "rensa/core/scalar.h"
#include "rensa/device/operation.h"
#include "rensa/device/storage.h"
#include "rensa/device/stream.h"

namespace rensa {

class View;
class Index;

class Array {
 public:
  class Selection;

  /// No array: shape(), item() and every operation on it throw; bool(a) is false.
  Array() = default;
  Array(StoragePtr storage, ArrayView view) : storage_(std::move(storage)), view_(view) {}

  /// Whether this is an array at all (not whether it is non-zero).
  bool defined() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return view_.shape; }
  std::int64_t shape(int axis) const;  // throws IndexError; negative axes count from the end
  const Shape& strides() const { return view_.strides; }  // bytes
  int ndim() const { return view_.ndim(); }
  std::int64_t size() const { return view_.size(); }
  std::int64_t nbytes() const { return view_.nbytes(); }
  Dtype dtype() const { return view_.dtype; }
  Device device() const { return view_.device; }
  bool is_contiguous() const { return view_.is_c_contiguous(); }
  const ArrayView& view() const { return view_; }
  const StoragePtr& storage() const { return storage_; }
  /// What an Operation takes. Throws ValueError for an undefined array.
  Operand operand() const;
  /// The first element's address, on the array's device.
  void* data() const { return view_.data; }

  // --- views: no copy, shared storage (reshape copies where strides do not allow a view) ---------
  [[nodiscard]] Array reshape(const Shape& shape) const;  // one extent may be -1
  [[nodiscard]] Array transpose() const;                  // axes reversed
  [[nodiscard]] Array transpose(const Shape& axes) const;
  [[nodiscard]] Array T() const { return transpose(); }
  [[nodiscard]] Array swapaxes(int a, int b) const;
  Array squeeze() const;
  Array squeeze(int axis) const;
  Array expand_dims(int axis) const;
  Array ravel() const;  // a copy unless contiguous
  [[nodiscard]] Array broadcast_to(const Shape& shape) const;

  // --- indexing ------------------------------------------------------------------------------
  /// Basic indexing gives a view: a[1], a[{Slice(), -1}], a[{ellipsis, newaxis}]. Throws
  /// IndexError.
  View operator[](BasicIndex index) const;
  View operator[](std::initializer_list<BasicIndex> index) const;
  /// Indexing by integer arrays and boolean masks, alone or mixed with the above, as NumPy's:
  /// a[rows], a[mask], a[{rows, Slice(), columns}]. A copy when it is read as an Array, a scatter
  /// when it is assigned to. (A template, so that an index without arrays means the view.)
  Selection operator[](const Array& index) const;
  template <class = void> Selection operator[](std::initializer_list<Index> index) const;

  // --- copies --------------------------------------------------------------------------------
  [[nodiscard]] Array copy() const;  // C-contiguous, same device
  /// A new array on `device`, also where this one is there already. Waits as to() does.
  [[nodiscard]] Array copy(Device device) const;
  [[nodiscard]] Array astype(Dtype dtype,
                             bool copy = true) const;  // copy = false: this array when it fits
  [[nodiscard]] Array ascontiguous() const;            // this array when it is C-contiguous
  /// This array on `device`: the same array, no copy, when it is there already, else a new one
  /// (xp::copyto writes into an array that there is). Waits (counted) towards the host, and towards
  /// a GPU from pageable memory of more than 64 MiB.
  [[nodiscard]] Array to(Device device) const;
  [[nodiscard]] Array to_cpu() const { return to(cpu()); }
  [[nodiscard]] Array to_gpu() const { return to(current_gpu()); }
  [[nodiscard]] Array to_gpu(int index) const { return to(gpu(index)); }
  /// Copies `source` (same shape and dtype, C-contiguous both) into this array on `stream`; with
  /// pinned host memory it returns at once, else it waits (counted). Throws ShapeError, DtypeError.
  void set(const Array& source) const;
  void set(const Array& source, const cuda::Stream& stream) const;
  /// A new host array with the values; waits (counted). The form with `out` copies into it on
  /// `stream` and returns at once when `out` is pinned.
  Array get() const;
  void get(const Array& out, const cuda::Stream& stream) const;

  // --- to the host: the calls that wait for the device ------------------------------------------
  /// The one element, converted. Waits (counted). Throws ShapeError unless size() == 1.
  template <class T> T item() const { return item_scalar().template as<T>(); }
  Scalar item_scalar() const;
  /// All elements in C order, converted to T. Waits (counted).
  template <class T> std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<std::size_t>(size()));
    if constexpr (std::same_as<T, bool>) {
      Array host = astype(Dtype::bool_).get();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = host.view_.as<bool>()[i];
    } else {
      copy_to_host(dtype_of<T>, values.data());
    }
    return values;
  }
  /// As operator<< prints it. Waits (counted).
  std::string str() const;

  // --- in place --------------------------------------------------------------------------------
  const Array& fill(Scalar value) const;
  /// Writes `source`, broadcast and converted ("same_kind"), into this array's elements.
  void assign(const Array& source) const;

  // --- reductions; `axis` left out means all axes
  // -------------------------------------------------
  Array sum(Axes axis = {}, bool keepdims = false) const;
  Array prod(Axes axis = {}, bool keepdims = false) const;
  Array mean(Axes axis = {}, bool keepdims = false) const;
  Array max(Axes axis = {}, bool keepdims = false) const;
  Array min(Axes axis = {}, bool keepdims = false) const;
  Array any(Axes axis = {}, bool keepdims = false) const;
  Array all(Axes axis = {}, bool keepdims = false) const;
  Array argmax() const;  // of the flattened array
  Array argmax(int axis, bool keepdims = false) const;
  Array argmin() const;
  Array argmin(int axis, bool keepdims = false) const;
  Array dot(const Array& other) const;

  // --- the routines of namespace xp of the same names (array/methods.cc) ------------------------
  Array var(Axes axis = {}, double ddof = 0, bool keepdims = false) const;
  Array std(Axes axis = {}, double ddof = 0, bool keepdims = false) const;
  Array ptp(Axes axis = {}, bool keepdims = false) const;
  Array cumsum(Axes axis = {}) const;
  Array cumprod(Axes axis = {}) const;
  Array trace(std::int64_t offset = 0, int axis1 = 0, int axis2 = 1) const;
  Array conj() const;
  Array real() const;  // a view where this array is complex
  Array imag() const;
  Array round(int decimals = 0) const;
  Array clip(Scalar least, Scalar most) const;
  Array clip(const Array& least, const Array& most) const;
  void sort(int axis = -1) const;  // in place
  Array argsort(int axis = -1) const;
  void partition(std::int64_t kth, int axis = -1) const;  // in place
  Array argpartition(std::int64_t kth, int axis = -1) const;
  Array searchsorted(const Array& values, std::string_view side = "left") const;
  std::vector<Array> nonzero() const;  // waits
  Array take(const Array& indices) const;
  Array take(const Array& indices, int axis) const;
  void put(const Array& indices, const Array& values) const;
  Array choose(std::initializer_list<Array> choices) const;
  Array compress(const Array& condition) const;  // waits
  Array compress(const Array& condition, int axis) const;
  void scatter_add(const Array& indices, const Array& values) const;
  void scatter_max(const Array& indices, const Array& values) const;
  void scatter_min(const Array& indices, const Array& values) const;
  Array repeat(std::int64_t repeats) const;
  Array repeat(std::int64_t repeats, int axis) const;
  Array diagonal(std::int64_t offset = 0, int axis1 = 0, int axis2 = 1) const;  // a view
  /// A flat copy.
  Array flatten() const;
  /// The last two axes exchanged: a view.
  Array mT() const;
  /// The same bytes as elements of `dtype`, a view. Where the sizes differ the last axis has to be
  /// contiguous; it grows or shrinks. Throws ShapeError.
  Array view(Dtype dtype) const;
  std::int64_t itemsize() const { return rensa::itemsize(view_.dtype); }
  /// The elements in C order. Waits.
  std::string tobytes() const;
  void tofile(const std::string& path) const;

#define RENSA_ARRAY_OPERATOR(symbol)                            \
  friend Array operator symbol(const Array& a, const Array& b); \
  friend Array operator symbol(const Array& a, Scalar b);       \
  friend Array operator symbol(Scalar a, const Array& b);
  RENSA_ARRAY_OPERATOR(+)
  RENSA_ARRAY_OPERATOR(-)
  RENSA_ARRAY_OPERATOR(*)
  RENSA_ARRAY_OPERATOR(/)
  RENSA_ARRAY_OPERATOR(%)
  RENSA_ARRAY_OPERATOR(==)
  RENSA_ARRAY_OPERATOR(!=)
  RENSA_ARRAY_OPERATOR(<)
  RENSA_ARRAY_OPERATOR(<=)
  RENSA_ARRAY_OPERATOR(>)
  RENSA_ARRAY_OPERATOR(>=)
  RENSA_ARRAY_OPERATOR(&)
  RENSA_ARRAY_OPERATOR(|)
  RENSA_ARRAY_OPERATOR(^)
  RENSA_ARRAY_OPERATOR(<<)
  RENSA_ARRAY_OPERATOR(>>)
#undef RENSA_ARRAY_OPERATOR
  friend Array operator-(const Array& a);
  friend Array operator+(const Array& a) { return a; }
  friend Array operator~(const Array& a);

  // In place, through the storage: other arrays on it see the change. Throws DtypeError where the
  // result's kind does not fit (int += float).
#define RENSA_ARRAY_INPLACE(symbol)                   \
  const Array& operator symbol(const Array& b) const; \
  const Array& operator symbol(Scalar b) const;
  RENSA_ARRAY_INPLACE(+=)
  RENSA_ARRAY_INPLACE(-=)
  RENSA_ARRAY_INPLACE(*=)
  RENSA_ARRAY_INPLACE(/=)
  RENSA_ARRAY_INPLACE(%=)
  RENSA_ARRAY_INPLACE(&=)
  RENSA_ARRAY_INPLACE(|=)
  RENSA_ARRAY_INPLACE(^=)
  RENSA_ARRAY_INPLACE(<<=)
  RENSA_ARRAY_INPLACE(>>=)
#undef RENSA_ARRAY_INPLACE

  /// A number does not rebind an array: say a.fill(7), or write through a view: a[{...}] = 7.
  template <class T>
  requires std::is_arithmetic_v<T> Array& operator=(T) = delete;

 private:
  void copy_to_host(Dtype dtype, void* out) const;
  StoragePtr storage_;
  ArrayView view_;
};

/// What basic indexing gives: an Array that, as a temporary, assigns through to its elements.
class [[nodiscard]] View : public Array {
 public:
  explicit View(Array array) : Array(std::move(array)) {}
  View(const View&) = default;
  void operator=(const View& source) && { assign(source); }
  void operator=(const Array& source) && { assign(source); }
  void operator=(Scalar value) && { fill(value); }
};

/// One entry of a full index: an entry of a basic one, an integer array (0-d ones too) or a boolean
/// mask, which stands for as many axes as it has.
class Index {
 public:
  template <std::convertible_to<BasicIndex> T> Index(T basic) : basic_(basic) {}
  Index(const Array& array) : is_array_(true), array_(array) {}
  Index(const Array::Selection& selection);
  bool is_array() const { return is_array_; }
  const BasicIndex& basic() const { return basic_; }
  const Array& array() const { return array_; }

 private:
  bool is_array_ = false;
  BasicIndex basic_ = newaxis;
  Array array_;
};

/// a[index] with arrays in the index: gathered where an Array is wanted, scattered to when assigned
/// to. Throws IndexError (for integer arrays on a GPU at the next wait), DtypeError for an index
/// that is neither integer nor bool, ShapeError. What goes through a mask waits for the device,
/// which alone knows how many elements are true; only to assign the same to all of them does not.
///
/// Of equal indices the last one's value stays. a[index] += v reads, adds and assigns, as NumPy
/// does: equal indices add once (xp::scatter_add adds them all).
class [[nodiscard]] Array::Selection {
 public:
  Selection(Array base, std::vector<Index> index)
      : base_(std::move(base)), index_(std::move(index)) {}
  Selection(const Selection&) = default;
  operator Array() const { return gather(); }
  Array gather() const;
  void operator=(const Selection& source) && { std::move(*this) = source.gather(); }
  void operator=(const Array& source) &&;
  void operator=(Scalar value) &&;

#define RENSA_SELECTION_INPLACE(symbol)   \
  void operator symbol(const Array& b)&&; \
  void operator symbol(Scalar b)&&;
  RENSA_SELECTION_INPLACE(+=)
  RENSA_SELECTION_INPLACE(-=)
  RENSA_SELECTION_INPLACE(*=)
  RENSA_SELECTION_INPLACE(/=)
  RENSA_SELECTION_INPLACE(%=)
  RENSA_SELECTION_INPLACE(&=)
  RENSA_SELECTION_INPLACE(|=)
  RENSA_SELECTION_INPLACE(^=)
#undef RENSA_SELECTION_INPLACE

 private:
  template <class B, class F> void update(const B& b, F in_place);
  bool is_leading_mask() const;

  Array base_;
  std::vector<Index> index_;
};
using Selection = Array::Selection;

template <class> Selection Array::operator[](std::initializer_list<Index> index) const {
  return Selection(*this, index);
}

/// NumPy's text. Waits for the device (counted).
std::ostream& operator<<(std::ostream& os, const Array& a);

/// Chainer's cuda.to_gpu and cuda.to_cpu: a.to_gpu(), a.to_gpu(index) and a.to_cpu().
inline Array to_gpu(const Array& a) { return a.to_gpu(); }
inline Array to_gpu(const Array& a, int index) { return a.to_gpu(index); }
inline Array to_cpu(const Array& a) { return a.to_cpu(); }
/// A page-locked copy of `a` in host memory. Throws DeviceError without a GPU.
Array to_pinned_memory(const Array& a);

/// Throws DeviceError naming `operation` and both operands unless they are on one device.
void check_same_device(const char* operation, const Array& a, const Array& b);

}  // namespace rensa

// Array: a handle to a strided view on shared storage. Copying it is cheap and shares. A function
// that waits for the device says so.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "rensa/array/array_methods.h"
#include "rensa/array/index.h"
#include "rensa/array/options.h"
#include "rensa/core/array_view.h"
#include "rensa/core/scalar.h"
#include "rensa/device/operation.h"
#include "rensa/device/storage.h"
#include "rensa/device/stream.h"

namespace rensa {

class Array;
class View;
class Index;
class Selector;
#ifdef __cpp_multidimensional_subscript
class LastIndex;
#endif
class FirstAxisIterator;

/// What the operators of Array call: friends that are only declared cannot be [[nodiscard]].
namespace operators {
#define RENSA_ARRAY_OPERATOR(name)            \
  Array name(const Array& a, const Array& b); \
  Array name(const Array& a, Scalar b);       \
  Array name(Scalar a, const Array& b);
RENSA_ARRAY_OPERATOR(add)
RENSA_ARRAY_OPERATOR(subtract)
RENSA_ARRAY_OPERATOR(multiply)
RENSA_ARRAY_OPERATOR(divide)
RENSA_ARRAY_OPERATOR(remainder)
RENSA_ARRAY_OPERATOR(equal)
RENSA_ARRAY_OPERATOR(not_equal)
RENSA_ARRAY_OPERATOR(less)
RENSA_ARRAY_OPERATOR(less_equal)
RENSA_ARRAY_OPERATOR(greater)
RENSA_ARRAY_OPERATOR(greater_equal)
RENSA_ARRAY_OPERATOR(bitwise_and)
RENSA_ARRAY_OPERATOR(bitwise_or)
RENSA_ARRAY_OPERATOR(bitwise_xor)
RENSA_ARRAY_OPERATOR(left_shift)
RENSA_ARRAY_OPERATOR(right_shift)
#undef RENSA_ARRAY_OPERATOR
Array negative(const Array& a);
Array invert(const Array& a);
}  // namespace operators

class Array : public ArrayMethods<Array> {
 public:
  class Selection;

  /// No array: shape(), item() and every operation on it throw; defined() is false.
  Array() = default;
  Array(StoragePtr storage, const ArrayView& view) : storage_(std::move(storage)), view_(view) {}
  // These make the view where it stays: a copy of what was just written waits for it.
  /// In C order, from where the memory begins.
  Array(StoragePtr storage, const Shape& shape, Dtype dtype, Device device)
      : storage_(std::move(storage)),
        view_{storage_->data(), dtype, device, shape,
              contiguous_strides(shape, rensa::itemsize(dtype))} {}
  /// Other elements of the memory of `base`, of its dtype: the strides are in bytes.
  Array(const Array& base, char* data, const Shape& shape, const Shape& strides)
      : storage_(base.storage_), view_{data, base.view_.dtype, base.view_.device, shape, strides} {}

  const ArrayView& view() const { return view_; }
  using ArrayMethods<Array>::view;
  const StoragePtr& storage() const { return storage_; }  // the memory; null where this is no array
  /// What an Operation takes. Throws ValueError for an undefined array.
  Operand operand() const;

  Array(const Array&) = default;
  Array(Array&&) = default;
  Array& operator=(const Array&) & = default;
  Array& operator=(Array&&) & = default;

  // --- indexing ---
  /// Basic indexing gives a view: a[1], a[{Slice(), -1}], a[{ellipsis, newaxis}], or a list made at
  /// run time (std::vector<BasicIndex>). Throws IndexError.
  View operator[](const BasicIndex& index) const;
  View operator[](std::initializer_list<BasicIndex> index) const;
  View operator[](std::span<const BasicIndex> index) const;
  /// Indexing by integer arrays and boolean masks, alone or mixed with the above, as NumPy's:
  /// a[rows], a[mask], a[{rows, Slice(), columns}], or a list made at run time
  /// (std::vector<Index>). A copy when it is read, a scatter when it is assigned to.
  Selection operator[](const Selector& index) const;
#ifdef __cpp_multidimensional_subscript
  // From C++23 on without braces: a[i, Slice()], a[rows, 1]. (In C++20 a[i, j] of plain integers
  // means a[j], by the comma operator.)
  template <std::convertible_to<BasicIndex>... I>
  requires(sizeof...(I) > 1) View operator[](const I&... entries) const;
#define RENSA_SUBSCRIPT(...) Selection operator[](__VA_ARGS__, const LastIndex& last) const;
  RENSA_SUBSCRIPT(const Index& a)
  RENSA_SUBSCRIPT(const Index& a, const Index& b)
  RENSA_SUBSCRIPT(const Index& a, const Index& b, const Index& c)
  RENSA_SUBSCRIPT(const Index& a, const Index& b, const Index& c, const Index& d)
  RENSA_SUBSCRIPT(const Index& a, const Index& b, const Index& c, const Index& d, const Index& e)
#undef RENSA_SUBSCRIPT
#endif

  // --- in place ---
  /// Writes `value`, converted, to all elements; other arrays on the storage see it. Does not wait.
  const Array& fill(Scalar value) const;
  /// Writes `source`, broadcast and converted ("same_kind"), into this array's elements.
  void assign(const Array& source) const;
  /// Copies `source` (same shape and dtype, C-contiguous both) into this array on `stream`; with
  /// pinned host memory it returns at once, else it waits (counted). Throws ShapeError, DtypeError.
  void set(const Array& source) const;
  void set(const Array& source, const cuda::Stream& stream) const;
  void sort(int axis = -1) const;
  void sort(const xp::SortOptions& options) const;
  void partition(const IntegerList& kth, int axis = -1) const;
  void put(const Array& indices, const Array& values,
           IndexModeOption mode = IndexMode::raise) const;
  void scatter_add(const Array& indices, const Array& values) const;
  void scatter_max(const Array& indices, const Array& values) const;
  void scatter_min(const Array& indices, const Array& values) const;

#define RENSA_ARRAY_OPERATOR(symbol, name)                                     \
  [[nodiscard]] friend Array operator symbol(const Array& a, const Array& b) { \
    return operators::name(a, b);                                              \
  }                                                                            \
  [[nodiscard]] friend Array operator symbol(const Array& a, Scalar b) {       \
    return operators::name(a, b);                                              \
  }                                                                            \
  [[nodiscard]] friend Array operator symbol(Scalar a, const Array& b) {       \
    return operators::name(a, b);                                              \
  }
  RENSA_ARRAY_OPERATOR(+, add)
  RENSA_ARRAY_OPERATOR(-, subtract)
  RENSA_ARRAY_OPERATOR(*, multiply)
  RENSA_ARRAY_OPERATOR(/, divide)
  RENSA_ARRAY_OPERATOR(%, remainder)
  RENSA_ARRAY_OPERATOR(==, equal)
  RENSA_ARRAY_OPERATOR(!=, not_equal)
  RENSA_ARRAY_OPERATOR(<, less)
  RENSA_ARRAY_OPERATOR(<=, less_equal)
  RENSA_ARRAY_OPERATOR(>, greater)
  RENSA_ARRAY_OPERATOR(>=, greater_equal)
  RENSA_ARRAY_OPERATOR(&, bitwise_and)
  RENSA_ARRAY_OPERATOR(|, bitwise_or)
  RENSA_ARRAY_OPERATOR(^, bitwise_xor)
  RENSA_ARRAY_OPERATOR(<<, left_shift)
  RENSA_ARRAY_OPERATOR(>>, right_shift)
#undef RENSA_ARRAY_OPERATOR
  [[nodiscard]] friend Array operator-(const Array& a) { return operators::negative(a); }
  [[nodiscard]] friend Array operator+(const Array& a) { return a; }
  [[nodiscard]] friend Array operator~(const Array& a) { return operators::invert(a); }

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

  // What is written by mistake, told by what to write instead.
  template <class T>
  requires(std::floating_point<T> || std::same_as<T, bool>) auto operator[](T) const {
    static_assert(detail::kWrong<T>,
                  "an index is an integer, a Slice, ellipsis, newaxis, or an array of integers or "
                  "bools (made by a & b, a | b and ~a, not by &&, || and !)");
    return *this;
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator=(T) {
    static_assert(detail::kWrong<T>,
                  "a number does not rebind an array: write a.fill(7), or a[{...}] = 7 for a part");
  }
  template <std::convertible_to<Array> T> void operator=(const T&) && {
    static_assert(detail::kWrong<T>,
                  "this array is a temporary, whose elements = does not write: "
                  "write a.T().assign(values), or a[{...}] = values");
  }
  template <class T = void> explicit operator bool() const {  // also what && || ! and if ask for
    static_assert(detail::kWrong<T>,
                  "an array is no truth: write a.any() or a.all() and .item<bool>(); a & b, a | b "
                  "and ~a instead of &&, || and !; xp::array_equal(a, b) for one answer; "
                  "a.defined() for whether it is an array");
    return false;
  }

 private:
  friend class ArrayMethods<Array>;
  const Array& self() const { return *this; }

  StoragePtr storage_;
  ArrayView view_;
};

/// What basic indexing gives: an Array that, as a temporary, assigns through to its elements.
class [[nodiscard]] View : public Array {
 public:
  explicit View(Array array) : Array(std::move(array)) {}
  using Array::Array;
  View(const View&) = default;
  void operator=(const View& source) && { assign(source); }
  void operator=(const Array& source) && { assign(source); }
  void operator=(Scalar value) && { fill(value); }
  template <class T> void operator=(const T&) & {
    static_assert(detail::kWrong<T>,
                  "a view with a name is not written by =, nor bound anew: write row.fill(5), "
                  "row.assign(values), or a[0] = values");
  }
};

/// What range-for walks: the views a[0], a[1], ... of an array that outlives it.
class FirstAxisIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = View;
  using reference = View;
  using pointer = void;
  using difference_type = std::ptrdiff_t;

  FirstAxisIterator() = default;
  FirstAxisIterator(const Array& array, std::int64_t i) : array_(&array), i_(i) {}
  View operator*() const;
  FirstAxisIterator& operator++() {
    ++i_;
    return *this;
  }
  FirstAxisIterator operator++(int) {
    FirstAxisIterator before = *this;
    ++i_;
    return before;
  }
  friend bool operator==(const FirstAxisIterator& a, const FirstAxisIterator& b) {
    return a.i_ == b.i_;
  }

 private:
  const Array* array_ = nullptr;
  std::int64_t i_ = 0;
};

/// One entry of a full index: an entry of a basic one, an integer array (0-d ones too) or a boolean
/// mask, which stands for as many axes as it has.
class Index {
 public:
  template <std::convertible_to<BasicIndex> T> Index(T basic) : basic_(basic) {}
  Index(const Array& array) : is_array_(true), array_(array) {}
  Index(const Array::Selection& selection);
  /// Whether it is an array, and not an entry of a basic index.
  bool is_array() const { return is_array_; }
  const BasicIndex& basic() const { return basic_; }  // where it is no array
  const Array& array() const { return array_; }       // where it is one

 private:
  bool is_array_ = false;
  BasicIndex basic_ = newaxis;
  Array array_;
};

/// An index with arrays, as it stands between the brackets. It lives as long as the expression that
/// it stands in, which is how a Selection knows where that expression ends.
class Selector {
 public:
  Selector(const Array& index) : own_(index), entries_(&own_, 1) {}
  Selector(const Array::Selection& index);
  Selector(std::initializer_list<Index> index) : entries_(index.begin(), index.size()) {}
  Selector(std::span<const Index> index) : entries_(index) {}
  Selector(const std::vector<Index>& index) : entries_(index) {}
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;
  /// Has the selection gathered if it is still there: it was given a name. Throws what that throws.
  ~Selector() noexcept(false) {
    if (selection_) end_expression();
  }
  std::span<const Index> entries() const { return entries_; }  // as many as the index has

 private:
  friend class Array::Selection;
  void begin_expression(const Array::Selection* selection) const;
  void end_expression();

  Index own_ = newaxis;
  std::span<const Index> entries_;
  mutable const Array::Selection* selection_ = nullptr;
  mutable int exceptions_ = 0;
};

/// a[index] with arrays in the index: an Array when it is read, gathered by the first to read it
/// and at the latest where the expression ends (`auto s = a[mask]` does not see what is written
/// later); scattered to, and not gathered, when it is assigned to. Throws IndexError (for integer
/// arrays on a GPU at the next wait), DtypeError for an index that is neither integer nor bool,
/// ShapeError. What goes through a mask waits for the device, which alone knows how many elements
/// are true; only to assign the same to all of them does not.
///
/// Of equal indices the last one's value stays. a[index] += v reads, adds and assigns, as NumPy
/// does: equal indices add once (xp::scatter_add adds them all).
class [[nodiscard]] Array::Selection : public ArrayMethods<Array::Selection> {
 public:
  Selection(const Selection& other) : array_(other.self()) {}
  ~Selection() {
    if (selector_) selector_->selection_ = nullptr;
  }
  operator Array() const { return self(); }

  // Elements of the gathered copy. They are no View: what is written there would be lost.
  [[nodiscard]] Array operator[](const BasicIndex& index) const;
  [[nodiscard]] Array operator[](std::initializer_list<BasicIndex> index) const;
  [[nodiscard]] Array operator[](std::span<const BasicIndex> index) const;
  [[nodiscard]] Array operator[](const Selector& index) const;

  void operator=(const Selection& source) && { std::move(*this) = source.self(); }
  void operator=(const Array& source) &&;
  void operator=(Scalar value) &&;
  template <class T> void operator=(const T&) & {
    static_assert(
        detail::kWrong<T>,
        "a selection with a name is a copy, which is not written by =: write a[mask] = 5");
  }

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
  friend class Array;
  friend class Selector;
  friend class ArrayMethods<Selection>;
  Selection(const Array& base, const Selector& selector);
  const Array& self() const {
    if (selector_) gather();
    return array_;
  }
  void gather() const;
  const Array& base() const;
  template <class B, class F> void update(const B& b, F in_place);
  bool is_leading_mask() const;

  // What is indexed, and by what; once gathered the elements, and null.
  mutable Array array_;
  mutable const Selector* selector_ = nullptr;
};
using Selection = Array::Selection;  // what a[mask] and a[indices] give before they are gathered

#ifdef __cpp_multidimensional_subscript
/// The last of several entries without braces; keeps the Selector of all of them.
class LastIndex {
 public:
  template <class T>
  requires std::convertible_to<const T&, Index> LastIndex(const T& entry) : entries_{entry} {}
  const Selector& after(std::initializer_list<Index> entries) const {
    entries_.insert(entries_.begin(), entries);
    return selector_.emplace(entries_);
  }

 private:
  mutable std::vector<Index> entries_;
  mutable std::optional<Selector> selector_;
};

template <std::convertible_to<BasicIndex>... I>
requires(sizeof...(I) > 1) View Array::operator[](const I&... entries) const {
  return (*this)[{BasicIndex(entries)...}];
}
inline Selection Array::operator[](const Index& a, const LastIndex& last) const {
  return (*this)[last.after({a})];
}
inline Selection Array::operator[](const Index& a, const Index& b, const LastIndex& last) const {
  return (*this)[last.after({a, b})];
}
inline Selection Array::operator[](const Index& a, const Index& b, const Index& c,
                                   const LastIndex& last) const {
  return (*this)[last.after({a, b, c})];
}
inline Selection Array::operator[](const Index& a, const Index& b, const Index& c, const Index& d,
                                   const LastIndex& last) const {
  return (*this)[last.after({a, b, c, d})];
}
inline Selection Array::operator[](const Index& a, const Index& b, const Index& c, const Index& d,
                                   const Index& e, const LastIndex& last) const {
  return (*this)[last.after({a, b, c, d, e})];
}
#endif

inline Index::Index(const Selection& selection) : Index(Array(selection)) {}
inline Selector::Selector(const Selection& index) : Selector(Array(index)) {}

inline View FirstAxisIterator::operator*() const { return (*array_)[i_]; }

template <class Self> Array ArrayMethods<Self>::T() const { return transpose(); }
template <class Self> Array ArrayMethods<Self>::to_cpu() const { return to(cpu()); }
template <class Self> Array ArrayMethods<Self>::to_gpu() const { return to(current_gpu()); }
template <class Self> Array ArrayMethods<Self>::to_gpu(int index) const { return to(gpu(index)); }
template <class Self> template <std::integral... N>
requires(sizeof...(N) > 1) Array ArrayMethods<Self>::reshape(N... extents)
const { return reshape(Shape{extents...}); }
template <class Self> template <std::integral... N>
requires(sizeof...(N) > 1) Array ArrayMethods<Self>::transpose(N... axes)
const { return transpose(Shape{axes...}); }

template <class Self>
template <std::same_as<bool> B>
Array ArrayMethods<Self>::astype(Dtype dtype, B copy) const {
  return copy ? astype(dtype) : as_dtype(dtype);
}
template <class Self>
template <xp::AxisLike A>
Array ArrayMethods<Self>::take(const Array& indices, const A& axis) const {
  return take(indices, xp::TakeOptions{.axis = axis});
}
template <class Self>
template <xp::AxisLike A>
Array ArrayMethods<Self>::compress(const Array& condition, const A& axis) const {
  return compress(condition, xp::CompressOptions{.axis = axis});
}

#define RENSA_FORMS(name, Options)                                                             \
  template <class Self> Array ArrayMethods<Self>::name() const { return name(xp::Options{}); } \
  template <class Self>                                                                        \
  template <xp::AxisLike A>                                                                    \
  Array ArrayMethods<Self>::name(const A& axis) const {                                        \
    return name(xp::Options{.axis = axis});                                                    \
  }                                                                                            \
  template <class Self>                                                                        \
  template <std::same_as<int> I>                                                               \
  Array ArrayMethods<Self>::name(std::initializer_list<I> axes) const {                        \
    return name(xp::Options{.axis = Axes(axes)});                                              \
  }
#define RENSA_FORMS_AND_KEEPDIMS(name, Options)                                                 \
  RENSA_FORMS(name, Options)                                                                    \
  template <class Self> Array ArrayMethods<Self>::name(const Axes& axis, bool keepdims) const { \
    return name(xp::Options{.axis = axis, .keepdims = keepdims});                               \
  }
RENSA_AXIS_METHODS(RENSA_FORMS, RENSA_FORMS_AND_KEEPDIMS)
#undef RENSA_FORMS
#undef RENSA_FORMS_AND_KEEPDIMS
#undef RENSA_AXIS_METHODS

extern template class ArrayMethods<Array>;
extern template class ArrayMethods<Selection>;

/// NumPy's text, a.str(). Waits for the device (counted).
std::ostream& operator<<(std::ostream& os, const Array& a);

/// Chainer's cuda.to_gpu and cuda.to_cpu: a.to_gpu(), a.to_gpu(index) and a.to_cpu().
[[nodiscard]] inline Array to_gpu(const Array& a) { return a.to_gpu(); }
[[nodiscard]] inline Array to_gpu(const Array& a, int index) { return a.to_gpu(index); }
[[nodiscard]] inline Array to_cpu(const Array& a) { return a.to_cpu(); }
/// A page-locked copy of `a` in host memory. Throws DeviceError without a GPU.
[[nodiscard]] Array to_pinned_memory(const Array& a);

/// Throws DeviceError naming `operation` and both operands unless they are on one device.
void check_same_device(const char* operation, const Array& a, const Array& b);

}  // namespace rensa

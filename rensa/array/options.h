// The options of routines, named where they are given: xp::add(a, b, {.out = c}),
// xp::sum(a, {.axis = 1, .dtype = float64}), a.take(rows, {.axis = 0, .mode = "clip"}). One struct
// for the routines that have the same keywords; NumPy's names, NumPy's defaults.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "rensa/array/axis_list.h"
#include "rensa/core/device.h"
#include "rensa/core/dtype.h"
#include "rensa/core/index_mode.h"
#include "rensa/core/scalar.h"

namespace rensa {

class Array;

/// An array that may be left out. It refers to the caller's array, for the length of the call:
/// a temporary is fine in the call's own braces, and cannot be assigned to the options of a later
/// call.
class ArrayOption {
 public:
  ArrayOption() = default;
  ArrayOption(const Array& array) : array_(&array) {}
  template <std::derived_from<Array> A> ArrayOption& operator=(const A& array) {
    array_ = &array;
    return *this;
  }
  template <std::derived_from<Array> A> void operator=(const A&&) {
    static_assert(!std::derived_from<A, Array>,
                  "the array is a temporary: options refer to an array that outlives the call");
  }
  explicit operator bool() const { return array_ != nullptr; }
  const Array& operator*() const { return *array_; }
  const Array* get() const { return array_; }  // the array; null where it is left out

 private:
  const Array* array_ = nullptr;
};

namespace detail {
// Nothing converts to it, so that {0, 1} is a list of axes and never a list of options.
struct NamedOptions {};
}  // namespace detail

/// In which order elements are read, or lie in new memory: 'C' (the last axis fastest), 'F' (the
/// first one), 'A' ('F' where the operand is Fortran-contiguous and not C-contiguous, else 'C') or
/// 'K' (as near as can be to how the operand lies). Throws ValueError for another letter.
class Order {
 public:
  constexpr Order(char letter) : letter_(letter) { check(); }
  constexpr Order(const char* letter)
      : letter_(letter && letter[0] && !letter[1] ? letter[0] : '?') {
    check();
  }
  constexpr char letter() const { return letter_; }  // 'C', 'F', 'A' or 'K'
  /// 'C' or 'F' for an operand.
  char of(const Array& a) const;

 private:
  constexpr void check() const {
    if (letter_ != 'C' && letter_ != 'F' && letter_ != 'A' && letter_ != 'K') refuse();
  }
  [[noreturn]] static void refuse();
  char letter_;
};

/// What becomes of an index out of range, by IndexMode's name or by NumPy's: "raise", "wrap",
/// "clip". Throws ValueError for another word.
class IndexModeOption {
 public:
  IndexModeOption(IndexMode mode) : mode_(mode) {}
  IndexModeOption(const char* name);
  IndexModeOption(std::string_view name);
  operator IndexMode() const { return mode_; }  // for the routines

 private:
  IndexMode mode_;
};

/// An integer, or several, where NumPy takes either: partition(a, 3), partition(a, {0, 3}).
class IntegerList {
 public:
  template <std::integral T>
  IntegerList(T value) : values_{static_cast<std::int64_t>(value)}, single_(true) {}
  IntegerList(std::initializer_list<std::int64_t> values) : values_(values) {}
  template <class V>
  requires std::convertible_to<const V&, std::span<const std::int64_t>> IntegerList(const V& values)
      : IntegerList(std::span<const std::int64_t>(values)) {}
  IntegerList(std::span<const std::int64_t> values) : values_(values.begin(), values.end()) {}
  /// Whether it was one integer and no list.
  bool single() const { return single_; }
  /// The one, or all of the list.
  const std::vector<std::int64_t>& values() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
  bool single_ = false;
};

/// A bound of clip: none, a number or an array (for the length of the call).
class Bound {
 public:
  Bound(None) {}
  template <std::convertible_to<Scalar> T> Bound(T number) : number_(Scalar(number)) {}
  Bound(const Array& array) : array_(&array) {}
  const Array* array() const { return array_; }                    // null where it is none
  const std::optional<Scalar>& number() const { return number_; }  // nothing where it is none

 private:
  const Array* array_ = nullptr;
  std::optional<Scalar> number_;
};

}  // namespace rensa

namespace rensa::xp {

/// NumPy's keywords of ufuncs.
struct UfuncOptions {
  /// Where the results go, converted ("same_kind"); what the call returns. Its shape is that of the
  /// results or one that they broadcast to. It may be an operand or share memory with one.
  ArrayOption out = {};
  /// bool: elsewhere `out` keeps what it holds, or a new array is 0 (in NumPy: anything).
  ArrayOption where = {};
  /// What to compute in, and so the result's dtype; operands convert to it ("same_kind").
  std::optional<Dtype> dtype = {};
  /// What conversions of operands and into `out` may do: "no", "equiv", "safe", "same_kind" or
  /// "unsafe".
  std::string_view casting = "same_kind";
};

/// NumPy's keywords of products.
struct ProductOptions {
  /// Where the product goes, converted ("same_kind"); what the call returns. Of the product's
  /// shape; it may share memory with an operand. Written in place where it is C-contiguous, of the
  /// product's dtype and apart from the operands.
  ArrayOption out = {};
};

/// NumPy's keywords of matmul, matvec, vecmat and vecdot.
struct MatmulOptions {
  rensa::detail::NamedOptions named = {};
  ArrayOption out = {};                    // as in ProductOptions
  std::string_view casting = "same_kind";  // what conversions may do, as of UfuncOptions
  /// What to compute in, and so the result's dtype; operands convert to it by `casting`.
  std::optional<Dtype> dtype = {};
  /// The axes that a matrix or a vector lies along, of each operand and of the result:
  /// matmul(a, b, {.axes = {{0, 1}, {0, 1}, {0, 1}}}). The last two (one) when left out. The
  /// result's may be left out where it has none.
  std::vector<AxisList> axes = {};
};

/// What may be given for axes: an int, a list or a range of them, `none`.
template <class T>
concept AxisLike = std::convertible_to<T, Axes>;

/// NumPy's keywords of reductions.
struct ReduceOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};         // all when left out
  bool keepdims = false;  // the reduced axes stay, of extent 1
  /// What to add or multiply in, and so the result's dtype: of sum, prod, mean and their nan forms.
  std::optional<Dtype> dtype = {};
  /// Where the results go, converted ("same_kind"); what the call returns.
  ArrayOption out = {};
  /// What the reduction starts with; max and min of nothing need it. Not of mean.
  std::optional<Scalar> initial = {};
  /// bool: which elements count; max and min need `initial` then.
  ArrayOption where = {};
};

/// The keywords of what reduces and has no others: argmax, median, ptp, count_nonzero.
struct AxisOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};
  bool keepdims = false;  // the reduced axes stay, of extent 1
  ArrayOption out = {};   // of the result's shape, converted ("same_kind"); what the call returns
};

/// NumPy's keywords of var and std.
struct VarianceOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};  // all when left out
  /// What is taken off the count that the squares are divided by.
  double ddof = 0;
  bool keepdims = false;            // the reduced axes stay, of extent 1
  std::optional<Dtype> dtype = {};  // of the result; bool and integers give float64 else
  ArrayOption out = {};
  ArrayOption where = {};  // bool: which elements count
  /// The mean where it is known already, with the reduced axes kept.
  ArrayOption mean = {};
  /// The array API's name of ddof; give one of the two.
  std::optional<double> correction = {};
};

/// NumPy's keywords of cumsum and cumprod.
struct ScanOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};                   // one; the raveled array when left out
  std::optional<Dtype> dtype = {};  // elements are converted before they are added
  ArrayOption out = {};             // of the result's shape, any dtype of the result's kind
};

/// The array API's keywords of cumulative_sum and cumulative_prod.
struct CumulativeOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};                   // may be left out for 0-d and 1-d arrays only
  std::optional<Dtype> dtype = {};  // elements are converted before they are added
  ArrayOption out = {};             // of the result's shape; what the call returns
  bool include_initial = false;     // a 0 (1) in front
};

/// The keywords of sort and argsort.
struct SortOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = -1;  // one; `none` sorts the raveled array
  bool descending = false;
  bool stable = true;  // every sort is
};

/// NumPy's keywords of take.
struct TakeOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};                           // one; the flattened array when left out
  ArrayOption out = {};                     // of the result's shape; what the call returns
  IndexModeOption mode = IndexMode::raise;  // what becomes of an index out of range
};

/// NumPy's keywords of choose.
struct ChooseOptions {
  rensa::detail::NamedOptions named = {};
  ArrayOption out = {};
  IndexModeOption mode = IndexMode::raise;  // what becomes of an index out of range
};

/// NumPy's keywords of compress.
struct CompressOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};        // one; the flattened array when left out
  ArrayOption out = {};  // of the result's shape; what the call returns
};

/// NumPy's keywords of diagonal, and of trace, which has all of them.
struct DiagonalOptions {
  rensa::detail::NamedOptions named = {};
  std::int64_t offset = 0;   // > 0 lies above the main diagonal
  int axis1 = 0, axis2 = 1;  // the two axes of the matrices
};
struct TraceOptions {
  rensa::detail::NamedOptions named = {};
  std::int64_t offset = 0;          // > 0 lies above the main diagonal
  int axis1 = 0, axis2 = 1;         // the two axes of the matrices
  std::optional<Dtype> dtype = {};  // what to add in, and so the result's
  ArrayOption out = {};             // where the sums go; what the call returns
};

/// NumPy's keywords of astype.
struct AstypeOptions {
  rensa::detail::NamedOptions named = {};
  bool copy = true;  // false: the same array where it fits
  /// Of the copy; 'C' when left out, where with `copy` false any order fits.
  std::optional<Order> order = {};
  std::string_view casting = "unsafe";
  std::optional<Device> device = {};  // waits as to() does
};

/// NumPy's keywords of reshape.
struct ReshapeOptions {
  rensa::detail::NamedOptions named = {};
  /// In which order elements are read and put into the new shape: 'C', 'F' or 'A'.
  Order order = 'C';
  /// true: always a copy; false: never (ValueError where there is no view); a view where one is
  /// possible when left out.
  std::optional<bool> copy = {};
};

}  // namespace rensa::xp

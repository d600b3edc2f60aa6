// The options of elementwise routines, reductions and products, named where they are given:
// xp::add(a, b, {.out = c}), xp::sum(a, {.axis = 1, .dtype = float64}).
#pragma once

#include <optional>
#include <string_view>

#include "rensa/array/array.h"

namespace rensa {

/// An array that may be left out. It refers to the caller's array, for the length of the call.
class ArrayOption {
 public:
  ArrayOption() = default;
  ArrayOption(const Array& array) : array_(&array) {}
  explicit operator bool() const { return array_ != nullptr; }
  const Array& operator*() const { return *array_; }
  const Array* get() const { return array_; }

 private:
  const Array* array_ = nullptr;
};

namespace detail {
// Nothing converts to it, so that {0, 1} is a list of axes and never a list of options.
struct NamedOptions {};
}  // namespace detail

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

/// NumPy's keywords of matmul and dot.
struct ProductOptions {
  /// Where the product goes, converted ("same_kind"); what the call returns. Of the product's
  /// shape; it may share memory with an operand. Written in place where it is C-contiguous, of the
  /// product's dtype and apart from the operands.
  ArrayOption out = {};
};

template <class T>
concept AxisLike = std::convertible_to<T, Axes>;

/// NumPy's keywords of reductions.
struct ReduceOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};
  bool keepdims = false;
  /// What to add or multiply in, and so the result's dtype: of sum, prod, mean and their nan forms.
  std::optional<Dtype> dtype = {};
  /// Where the results go, converted ("same_kind"); what the call returns.
  ArrayOption out = {};
  /// What the reduction starts with; max and min of nothing need it. Not of mean.
  std::optional<Scalar> initial = {};
  /// bool: which elements count; max and min need `initial` then.
  ArrayOption where = {};
};

}  // namespace rensa::xp

// What stands between the brackets of an array.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "rensa/core/shape.h"

namespace rensa {

struct None {};                // Python's None, for what may be left out
inline constexpr None none{};  // the one value of None

/// Python's slice(start, stop, step); parts that are `none` take Python's defaults.
class Slice {
 public:
  constexpr Slice() = default;
  constexpr Slice(None) {}
  constexpr Slice(std::int64_t stop) : stop_(stop) {}
  constexpr Slice(std::int64_t start, std::int64_t stop, std::int64_t step = 1)
      : start_(start), stop_(stop), step_(step) {}
  constexpr Slice(std::int64_t start, None, std::int64_t step = 1) : start_(start), step_(step) {}
  constexpr Slice(None, std::int64_t stop, std::int64_t step = 1) : stop_(stop), step_(step) {}
  constexpr Slice(None, None, std::int64_t step = 1) : step_(step) {}

  /// Python's slice.indices(extent): the first index, the count and the step. Throws ValueError for
  /// a step of 0.
  struct Range {
    /// The first index, how many there are, and from one to the next.
    std::int64_t start, count, step;
  };
  Range over(std::int64_t extent) const;  // the indices of an axis of `extent` that it stands for

 private:
  std::optional<std::int64_t> start_, stop_;
  std::int64_t step_ = 1;
};

struct Ellipsis {};                    // Python's `...`: the axes that are not named, all of each
struct NewAxis {};                     // NumPy's newaxis: an axis of extent 1
inline constexpr Ellipsis ellipsis{};  // the one value of Ellipsis
inline constexpr NewAxis newaxis{};    // the one value of NewAxis

namespace detail {
/// False, but known only when a template is used: a static_assert of it says what to write instead.
template <class...> inline constexpr bool kWrong = false;
}  // namespace detail

// a[Slice(), -1] without braces would be a comma operator, hence a[-1]: an error instead. (The
// return types are deduced so that it is the first one.)
template <class T>
concept IndexEntry =
    std::same_as<T, Slice> || std::same_as<T, Ellipsis> || std::same_as<T, NewAxis>;
#define RENSA_NEEDS_BRACES(T)                                          \
  static_assert(detail::kWrong<T>,                                     \
                "an index of several entries stands in braces: a[{i, " \
                "Slice()}]")
template <IndexEntry T, class U> auto operator,(T entry, U&&) {
  RENSA_NEEDS_BRACES(T);
  return entry;
}
template <class U, IndexEntry T>
requires(!IndexEntry<std::remove_cvref_t<U>>) auto operator,(U&&, T entry) {
  RENSA_NEEDS_BRACES(T);
  return entry;
}
#undef RENSA_NEEDS_BRACES

/// One entry of a basic index: an integer, a Slice, `ellipsis` or `newaxis`.
class BasicIndex {
 public:
  enum class Kind : unsigned char { integer, slice, ellipsis, newaxis };  // what an entry is
  template <std::integral T>
  requires(!std::same_as<T, bool>) BasicIndex(T i)
      : kind_(Kind::integer), integer_(static_cast<std::int64_t>(i)) {
    // What is beyond int64 is beyond every axis, and not its two's complement.
    if (std::is_unsigned_v<T> && integer_ < 0) integer_ = std::numeric_limits<std::int64_t>::max();
  }
  BasicIndex(Slice s) : kind_(Kind::slice), slice_(s) {}
  BasicIndex(Ellipsis) : kind_(Kind::ellipsis) {}
  BasicIndex(NewAxis) : kind_(Kind::newaxis) {}
  Kind kind() const { return kind_; }                // which of the others has a value
  std::int64_t integer() const { return integer_; }  // of an integer
  const Slice& slice() const { return slice_; }      // of a slice

 private:
  Kind kind_;
  std::int64_t integer_ = 0;
  Slice slice_;
};

/// A std::vector, std::array, span or Shape: integers known at run time only.
template <class V>
concept IntegerRange = std::convertible_to<const V&, std::span<const std::int64_t>> ||
    std::convertible_to<const V&, std::span<const int>>;
/// They as a Shape. Throws ShapeError for more than kMaxNdim.
template <IntegerRange V> Shape shape_of(const V& values) {
  if constexpr (std::convertible_to<const V&, std::span<const std::int64_t>>) {
    return Shape(std::span<const std::int64_t>(values));
  } else {
    Shape shape;
    for (int value : std::span<const int>(values)) shape.push_back(value);
    return shape;
  }
}

/// The axes of a reduction: one, several, or all when left out.
class Axes {
 public:
  Axes() = default;
  Axes(None) {}
  Axes(int axis) : all_(false), count_(1) { values_[0] = axis; }
  // Not of a std::initializer_list: GCC takes {.keepdims = true} for one, of the integer 1.
  template <std::same_as<int>... I>
  requires(sizeof...(I) > 1) Axes(I... axes) : Axes(from_list(Shape{axes...})) {}
  template <IntegerRange V> Axes(const V& axes) : Axes(from_list(shape_of(axes))) {}
  /// Bit i set for each axis, out-of-range and repeated ones reported as IndexError/ValueError
  /// naming `operation`.
  unsigned mask(const char* operation, int ndim) const;
  bool all() const { return all_; }  // whether it is left out: every axis
  /// The axes as they were given. Call it unless all().
  Shape values() const;

 private:
  static Axes from_list(const Shape& axes);
  bool all_ = true;
  int count_ = 0;
  int values_[8] = {};
};

}  // namespace rensa

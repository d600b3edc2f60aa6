// Shape: up to eight extents, stored inline.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <type_traits>

namespace rensa {

inline constexpr int kMaxNdim = 8;  // axes of an array, at the most

/// One number of a Shape, of any integral type. Throws ShapeError for one beyond int64.
class Extent {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) constexpr Extent(T value)
      : value_(static_cast<std::int64_t>(value)) {
    if (std::is_unsigned_v<T> && value_ < 0) throw_beyond_int64();
  }
  constexpr operator std::int64_t() const { return value_; }

 private:
  [[noreturn]] static void throw_beyond_int64();
  std::int64_t value_;
};

/// A list of at most kMaxNdim integers: the extents of an array, its strides or some axes.
class Shape {
 public:
  Shape() = default;
  /// Throws ShapeError for more than kMaxNdim values, as the next one does.
  Shape(std::initializer_list<Extent> values);
  explicit Shape(std::span<const std::int64_t> values);
  /// One integer n is (n,), as in NumPy.
  template <std::integral T>
  requires(!std::same_as<T, bool>) Shape(T n) : Shape({Extent(n)}) {}
  /// `count` times `value`.
  static Shape filled(int count, std::int64_t value);

  int ndim() const { return ndim_; }         // the number of values
  int size() const { return ndim_; }         // the same
  bool empty() const { return ndim_ == 0; }  // of a 0-d array
  /// A negative i counts from the end. Throws IndexError.
  std::int64_t& operator[](int i) { return values_[place(i)]; }
  std::int64_t operator[](int i) const { return values_[place(i)]; }
  std::int64_t* begin() { return values_; }        // the first value
  std::int64_t* end() { return values_ + ndim_; }  // behind the last value
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + ndim_; }
  const std::int64_t* data() const { return values_; }  // the first value
  /// Throws ShapeError for a value too many.
  void push_back(std::int64_t value) {
    if (ndim_ == kMaxNdim) throw_too_many(kMaxNdim + 1);
    values_[ndim_++] = value;
  }
  /// Throw IndexError for a place that is not there, ShapeError for a value too many.
  void insert(int position, std::int64_t value);
  void erase(int position);  // throws IndexError for a place that is not there

  /// The product of all values: an array's element count.
  std::int64_t total() const;
  /// As Python prints a tuple: "(2, 3)", "(5,)", "()".
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  int place(int i) const {
    return static_cast<unsigned>(i) < static_cast<unsigned>(ndim_) ? i : place_from_end(i);
  }
  int place_from_end(int i) const;
  [[noreturn]] static void throw_too_many(std::size_t count);

  std::int64_t values_[kMaxNdim] = {};
  int ndim_ = 0;
};

std::ostream& operator<<(std::ostream& os, const Shape& shape);

/// NumPy's broadcast of two shapes; throws ShapeError naming `operation` and both.
Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b);

/// `axis` counted from the front; throws IndexError naming `operation` when out of range.
int normalize_axis(const char* operation, std::int64_t axis, int ndim);

/// Byte strides of a C-contiguous array.
Shape contiguous_strides(const Shape& shape, std::int64_t itemsize);

}  // namespace rensa

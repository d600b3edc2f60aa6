// Shape: up to eight extents, stored inline.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace rensa {

inline constexpr int kMaxNdim = 8;

/// A list of at most kMaxNdim integers: the extents of an array, its strides or some axes.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> values)
      : Shape(std::span<const std::int64_t>(values.begin(), values.size())) {}
  /// Throws ShapeError for more than kMaxNdim values.
  explicit Shape(std::span<const std::int64_t> values);
  /// `count` times `value`.
  static Shape filled(int count, std::int64_t value);

  int ndim() const { return ndim_; }
  int size() const { return ndim_; }
  bool empty() const { return ndim_ == 0; }
  std::int64_t& operator[](int i) { return values_[i]; }
  std::int64_t operator[](int i) const { return values_[i]; }
  std::int64_t* begin() { return values_; }
  std::int64_t* end() { return values_ + ndim_; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + ndim_; }
  const std::int64_t* data() const { return values_; }
  void push_back(std::int64_t value);
  void insert(int position, std::int64_t value);
  void erase(int position);

  /// The product of all values: an array's element count.
  std::int64_t total() const;
  /// As Python prints a tuple: "(2, 3)", "(5,)", "()".
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::int64_t values_[kMaxNdim] = {};
  int ndim_ = 0;
};

/// NumPy's broadcast of two shapes; throws ShapeError naming `operation` and both.
Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b);

/// `axis` counted from the front; throws IndexError naming `operation` when out of range.
int normalize_axis(const char* operation, std::int64_t axis, int ndim);

/// Byte strides of a C-contiguous array.
Shape contiguous_strides(const Shape& shape, std::int64_t itemsize);

}  // namespace rensa

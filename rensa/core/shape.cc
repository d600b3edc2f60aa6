// Shapes: the inline list, broadcasting and axes.
#include "rensa/core/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "rensa/core/checked.h"
#include "rensa/core/error.h"

namespace rensa {

void Extent::throw_beyond_int64() {
  throw ShapeError("shape: an extent is beyond int64, more than can be counted");
}

void Shape::throw_too_many(std::size_t count) {
  throw ShapeError(
      fmt::format("shape: {} dimensions are more than the {} that an array can have; reshape first",
                  count, kMaxNdim));
}

Shape::Shape(std::initializer_list<Extent> values) {
  if (values.size() > static_cast<std::size_t>(kMaxNdim)) throw_too_many(values.size());
  std::copy(values.begin(), values.end(), values_);
  ndim_ = static_cast<int>(values.size());
}

void detail::throw_uncountable(const char* operation, std::int64_t a, char sign, std::int64_t b) {
  throw ShapeError(fmt::format("{}: {} {} {} is more than can be counted", operation, a, sign, b));
}

Shape::Shape(std::span<const std::int64_t> values) {
  if (values.size() > static_cast<std::size_t>(kMaxNdim)) throw_too_many(values.size());
  std::copy(values.begin(), values.end(), values_);
  ndim_ = static_cast<int>(values.size());
}

Shape Shape::filled(int count, std::int64_t value) {
  if (count < 0 || count > kMaxNdim) throw_too_many(static_cast<std::size_t>(count));
  Shape shape;
  std::fill_n(shape.values_, count, value);
  shape.ndim_ = count;
  return shape;
}

int Shape::place_from_end(int i) const {
  if (i < -ndim_ || i >= ndim_) {
    throw IndexError(
        fmt::format("shape: index {} is out of bounds for {} of length {}", i, str(), ndim_));
  }
  return i + ndim_;
}

void Shape::insert(int position, std::int64_t value) {
  if (ndim_ == kMaxNdim) throw_too_many(kMaxNdim + 1);
  if (position < 0 || position > ndim_) {
    throw IndexError(fmt::format("shape: {} has no place {}", str(), position));
  }
  std::copy_backward(values_ + position, values_ + ndim_, values_ + ndim_ + 1);
  values_[position] = value;
  ++ndim_;
}

void Shape::erase(int position) {
  if (position < 0 || position >= ndim_) {
    throw IndexError(fmt::format("shape: {} has no place {}", str(), position));
  }
  std::copy(values_ + position + 1, values_ + ndim_, values_ + position);
  values_[--ndim_] = 0;
}

std::int64_t Shape::total() const {
  std::int64_t total = 1;
  bool overflow = false;
  for (std::int64_t value : *this) {
    if (value == 0) return 0;
    overflow |= __builtin_mul_overflow(total, value, &total);
  }
  if (overflow) {
    throw ShapeError(fmt::format("shape: {} has more elements than can be counted", str()));
  }
  return total;
}

std::string Shape::str() const {
  if (ndim_ == 1) return fmt::format("({},)", values_[0]);
  return fmt::format("({})", fmt::join(begin(), end(), ", "));
}

std::ostream& operator<<(std::ostream& os, const Shape& shape) { return os << shape.str(); }

bool operator==(const Shape& a, const Shape& b) {
  if (a.ndim_ != b.ndim_) return false;
  for (int i = 0; i < a.ndim_; ++i) {  // few: a call of memcmp would be longer
    if (a.values_[i] != b.values_[i]) return false;
  }
  return true;
}

Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b) {
  Shape result = Shape::filled(std::max(a.ndim(), b.ndim()), 1);
  int n = result.ndim();
  for (int i = 0; i < n; ++i) {
    int in_a = i - (n - a.ndim()), in_b = i - (n - b.ndim());
    std::int64_t x = in_a < 0 ? 1 : a[in_a], y = in_b < 0 ? 1 : b[in_b];
    if (x != y && x != 1 && y != 1) {
      throw ShapeError(fmt::format(
          "{}: shapes {} and {} do not broadcast: {} and {} meet at axis {}; extents must be equal "
          "or 1, counted from the last axis",
          operation, a.str(), b.str(), x, y, i - n));
    }
    result[i] = x == 1 ? y : x;
  }
  return result;
}

int normalize_axis(const char* operation, std::int64_t axis, int ndim) {
  if (axis < -ndim || axis >= ndim) {
    throw IndexError(fmt::format("{}: axis {} is out of bounds for array of dimension {}",
                                 operation, axis, ndim));
  }
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

Shape contiguous_strides(const Shape& shape, std::int64_t itemsize) {
  Shape strides = Shape::filled(shape.ndim(), 0);
  std::int64_t stride = itemsize;
  for (int i = shape.ndim() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride = wrapping_multiply(stride, std::max<std::int64_t>(shape[i], 1));
  }
  return strides;
}

}  // namespace rensa

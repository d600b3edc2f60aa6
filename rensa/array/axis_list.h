// Axes (or extents) in the order given, or none of them.
#pragma once

#include <optional>

#include "rensa/array/index.h"
#include "rensa/core/shape.h"

namespace rensa {

/// What an argument like NumPy's `axis=None | int | tuple` takes: AxisList() or `none`, 1, {0, -1}.
class AxisList {
 public:
  AxisList() = default;
  AxisList(None) {}
  AxisList(int axis) : values_(Shape{axis}) {}
  AxisList(std::initializer_list<std::int64_t> axes) : values_(Shape(axes)) {}
  template <IntegerRange V> AxisList(const V& axes) : values_(shape_of(axes)) {}

  /// Whether there is a list; an empty one is one.
  bool given() const { return values_.has_value(); }
  /// The values; call it only when given().
  const Shape& values() const { return *values_; }

 private:
  std::optional<Shape> values_;
};

}  // namespace rensa

// Axes (or extents) in the order given, or none of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "rensa/array/index.h"
#include "rensa/core/shape.h"

namespace rensa {

/// What an argument like NumPy's `axis=None | int | tuple` takes: AxisList() or `none`, 1, {0, -1}.
class AxisList {
 public:
  AxisList() = default;
  AxisList(None) {}
  // As with Axes, not of a std::initializer_list.
  template <std::integral... I>
  requires(sizeof...(I) > 0 && !(std::same_as<I, bool> || ...)) AxisList(I... axes)
      : values_(Shape{static_cast<std::int64_t>(axes)...}) {}
  template <IntegerRange V> AxisList(const V& axes) : values_(shape_of(axes)) {}

  /// Whether there is a list; an empty one is one.
  bool given() const { return values_.has_value(); }
  /// The values; call it only when given().
  const Shape& values() const { return *values_; }

 private:
  std::optional<Shape> values_;
};

}  // namespace rensa

// Functions that move values about, with gradients of any order. They give views of their input's
// memory where arrays do.
#pragma once

#include <initializer_list>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// One extent may be -1.
[[nodiscard]] Variable reshape(const Variable& x, const Shape& shape);
/// Axes reversed, or in the order `axes`.
[[nodiscard]] Variable transpose(const Variable& x);
[[nodiscard]] Variable transpose(const Variable& x, const Shape& axes);
[[nodiscard]] Variable broadcast_to(const Variable& x, const Shape& shape);
/// Summed to `shape`, the reverse of broadcasting.
[[nodiscard]] Variable sum_to(const Variable& x, const Shape& shape);
/// Basic indexing, as x[{...}].
[[nodiscard]] Variable get_item(const Variable& x, std::initializer_list<BasicIndex> index);
/// The variables behind one another along `axis`.
[[nodiscard]] Variable concat(const Variables& xs, int axis = 1);
/// The gradient is cast back.
[[nodiscard]] Variable cast(const Variable& x, Dtype dtype);
/// x on `device`, the same memory when it is there already. The gradient is copied back.
[[nodiscard]] Variable copy(const Variable& x, Device device);
/// x where `condition`, else y; all of one shape after broadcasting.
[[nodiscard]] Variable where(const Array& condition, const Variable& x, const Variable& y);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// Functions that move values about, with gradients of any order. They give views of their input's
// memory where arrays do.
#pragma once

#include <initializer_list>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// One extent may be -1.
Variable reshape(const Variable& x, const Shape& shape);
/// Axes reversed, or in the order `axes`.
Variable transpose(const Variable& x);
Variable transpose(const Variable& x, const Shape& axes);
Variable broadcast_to(const Variable& x, const Shape& shape);
/// Summed to `shape`, the reverse of broadcasting.
Variable sum_to(const Variable& x, const Shape& shape);
/// Basic indexing, as x[{...}].
Variable get_item(const Variable& x, std::initializer_list<BasicIndex> index);
/// The variables behind one another along `axis`.
Variable concat(const Variables& xs, int axis = 1);
/// The gradient is cast back.
Variable cast(const Variable& x, Dtype dtype);
/// x on `device`, the same memory when it is there already. The gradient is copied back.
Variable copy(const Variable& x, Device device);
/// x where `condition`, else y; all of one shape after broadcasting.
Variable where(const Array& condition, const Variable& x, const Variable& y);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// Functions that join variables and take them apart, with gradients of any order.
#pragma once

#include <optional>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// Throw ValueError for no variables, ShapeError for shapes that do not fit.
/// The variables behind one another along `axis`.
[[nodiscard]] Variable concat(const Variables& xs, int axis = 1);
/// Variables of one shape along a new axis.
[[nodiscard]] Variable stack(const Variables& xs, int axis = 0);
/// Along axis 1; 1-d ones behind one another.
[[nodiscard]] Variable hstack(const Variables& xs);
/// Along axis 0; 1-d ones as rows.
[[nodiscard]] Variable vstack(const Variables& xs);
/// Along axis 2; (n,) as (1, n, 1), (m, n) as (m, n, 1).
[[nodiscard]] Variable dstack(const Variables& xs);
/// All in the shape that they broadcast to.
[[nodiscard]] Variables broadcast(const Variables& xs);

/// A number of equal parts along `axis` (ShapeError where they do not come out), or parts cut at
/// indices: split_axis(x, 3, 1), split_axis(x, {2, 5}, 1). Views.
[[nodiscard]] Variables split_axis(const Variable& x, const IntegerList& indices_or_sections,
                                   int axis);
/// The sub-arrays along an axis, which falls away: views.
[[nodiscard]] Variables separate(const Variable& x, int axis = 0);

/// Sequences (l_i, ...) as one array (n, length, ...), `padding` behind the shorter ones; `length`
/// is the longest's when left out. Throws ShapeError for a sequence that is longer, or of another
/// shape else.
[[nodiscard]] Variable pad_sequence(const Variables& xs,
                                    std::optional<std::int64_t> length = std::nullopt,
                                    Scalar padding = 0);
/// Sequences (l_i, ...) of falling lengths as their first elements (n, ...), their second ones, and
/// so on: of each place as many as reach it. Throws ShapeError for lengths that rise.
[[nodiscard]] Variables transpose_sequence(const Variables& xs);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

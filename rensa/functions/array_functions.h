// Functions that turn, repeat and pad arrays, with gradients of any order. They give views of their
// input's memory where arrays do. What indexes and what joins is beside this
// (indexing_functions.h, joining_functions.h).
#pragma once

#include <initializer_list>
#include <string_view>

#include "rensa/autograd/variable.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"

namespace rensa {
namespace functions {

// --- shapes ---
/// One extent may be -1.
[[nodiscard]] Variable reshape(const Variable& x, const Shape& shape);
/// A new axis of extent 1, at place `axis` of the result.
[[nodiscard]] Variable expand_dims(const Variable& x, int axis);
/// Without the axes given, or all of extent 1. Throws ShapeError for an axis of another extent.
[[nodiscard]] Variable squeeze(const Variable& x, const AxisList& axis = {});
/// As one axis.
[[nodiscard]] Variable flatten(const Variable& x);
/// X in a shape that it broadcasts to. Throws ShapeError.
[[nodiscard]] Variable broadcast_to(const Variable& x, const Shape& shape);
/// Summed to `shape`, the reverse of broadcasting.
[[nodiscard]] Variable sum_to(const Variable& x, const Shape& shape);

// --- the order of axes ---
/// Axes reversed, or in the order `axes`.
[[nodiscard]] Variable transpose(const Variable& x);
[[nodiscard]] Variable transpose(const Variable& x, const Shape& axes);
[[nodiscard]] Variable swapaxes(const Variable& x, int axis1, int axis2);  // the two axes exchanged
/// The axes `source` at the places `destination`; the others keep their order.
[[nodiscard]] Variable moveaxis(const Variable& x, int source, int destination);
[[nodiscard]] Variable moveaxis(const Variable& x, const Shape& source, const Shape& destination);
/// Axis `axis` moved in front of axis `start`.
[[nodiscard]] Variable rollaxis(const Variable& x, int axis, int start = 0);

// --- the order of elements ---
/// Backwards along the axes, all when left out.
[[nodiscard]] Variable flip(const Variable& x, Axes axis = {});
/// Backwards along axis 1 (axis 0). Throw IndexError where there is none.
[[nodiscard]] Variable fliplr(const Variable& x);
[[nodiscard]] Variable flipud(const Variable& x);
/// Elements shifted in a circle; without an axis those of the flattened x.
[[nodiscard]] Variable roll(const Variable& x, std::int64_t shift);
[[nodiscard]] Variable roll(const Variable& x, std::int64_t shift, int axis);
[[nodiscard]] Variable roll(const Variable& x, const Shape& shifts, const Shape& axes);

// --- more elements ---
/// Each element of the flattened x, or sub-array along `axis`, `repeats` times; of a list of counts
/// element i repeats[i] times. Throws ValueError for a negative count, ShapeError where there are
/// neither one nor as many as elements.
[[nodiscard]] Variable repeat(const Variable& x, const IntegerList& repeats,
                              OptionalAxis axis = none);
/// x behind itself, reps[i] times along axis i; the shorter of both shapes is filled up with ones
/// in front.
[[nodiscard]] Variable tile(const Variable& x, const Shape& reps);
/// x with a border: pad(x, 1), pad(x, {1, 2}), pad(x, {{0, 0}, {1, 2}}). Modes: "constant", "edge",
/// "reflect", "symmetric", "wrap", as NumPy's. Throws ValueError for another mode, negative widths,
/// widths for another number of axes.
[[nodiscard]] Variable pad(const Variable& x, const xp::PadWidth& pad_width,
                           std::string_view mode = "constant", Scalar constant_values = 0);

// --- parts, choices, conversions ---
/// The diagonals of the matrices that axis1 and axis2 make, as the last axis; `offset` > 0 lies
/// above the main one.
[[nodiscard]] Variable diagonal(const Variable& x, std::int64_t offset = 0, int axis1 = 0,
                                int axis2 = 1);
/// x where `condition`, else y; all of one shape after broadcasting.
[[nodiscard]] Variable where(const Array& condition, const Variable& x, const Variable& y);
[[nodiscard]] Variable where(const Variable& condition, const Variable& x, const Variable& y);
/// `value` where `mask` (bool, broadcast) is true, else x.
[[nodiscard]] Variable masked_fill(const Variable& x, const Array& mask, Scalar value);
/// The gradient is cast back.
[[nodiscard]] Variable cast(const Variable& x, Dtype dtype);
/// x on `device`, the same memory when it is there already. The gradient is copied back.
[[nodiscard]] Variable copy(const Variable& x, Device device);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

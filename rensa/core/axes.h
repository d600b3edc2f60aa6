// The axes of views in the order in which to walk them.
#pragma once

#include "rensa/core/array_view.h"

namespace rensa {

/// Orders the axes of `count` views of one shape so that the first view's strides fall, then
/// collapses them: the order in which to walk when any order will do.
void normalize_axes(ArrayView* const* views, int count);

/// The view with axis axes[i] as its axis i.
void permute_axes(ArrayView* view, const Shape& axes);

/// Gives views without axes one of extent 1.
void keep_an_axis(ArrayView* const* views, int count);

/// The axes of `view` whose bit in `axes` is not set, or (`reduced`) is; the data is the view's.
ArrayView part_of_axes(const ArrayView& view, unsigned axes, bool reduced);

/// The least distance between elements in memory, of a view whose axes are in order; that of a view
/// without axes is the greatest there is.
std::int64_t densest_stride(const ArrayView& view);

}  // namespace rensa

// The axes of a reduction split in two, and argmax and argmin over them.
#pragma once

#include "rensa/core/array_view.h"
#include "rensa/core/reductions.h"

namespace rensa::host {

/// `in` and `out` of a reduction without the reduced axes, and the reduced axes of `in`; each with
/// its axes in order of falling strides and collapsed; the reduced ones stay in the order that they
/// have where `positions` are asked for. All data pointers are those of the views.
struct SplitAxes {
  SplitAxes(const ArrayView& in, unsigned axes, const ArrayView& out, bool positions);
  ArrayView kept_in, kept_out, reduced;
};

/// Positions of the greatest or least elements; NaN counts as either, the first of equals wins.
void run_argreduce(Reduction reduction, ComputeType type, const SplitAxes& split);

}  // namespace rensa::host

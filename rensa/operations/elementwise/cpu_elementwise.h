// Elementwise work on views, as other parts of the CPU backend ask for it.
#pragma once

#include "rensa/core/array_view.h"
#include "rensa/core/scalar.h"
#include "rensa/core/ufunc_info.h"

namespace rensa::host {

/// One input: a view of the output's shape, which outlives the call, or a number.
struct Input {
  Input() = default;
  Input(const ArrayView& view) : view(&view) {}
  Input(Scalar number) : scalar(number) {}
  const ArrayView* view = nullptr;
  Scalar scalar;
};

/// The number as a value of `type`, the type that `compute` is computed in. Integers keep what
/// their dtype cannot hold: comparisons with them stay right.
void make_value(const Scalar& scalar, Dtype compute, ComputeType type, void* value);

/// out = ufunc(inputs) computed in `compute`; see operations/elementwise/elementwise.h.
void run_elementwise(Ufunc ufunc, Dtype compute, const Input* inputs, int num_inputs,
                     const ArrayView& out);

}  // namespace rensa::host

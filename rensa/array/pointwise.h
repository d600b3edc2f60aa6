// Calls of the rows of operations/pointwise/pointwise.def: several arrays in, several out, in one
// kernel.
#pragma once

#include <span>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/operations/pointwise/pointwise.h"

namespace rensa::detail {

/// The row's outputs, new arrays. Inputs are arrays of one device, at least one, which broadcast,
/// and numbers. The arrays' dtypes meet in a floating one (a complex one where the row takes it),
/// in which the row computes and which its outputs have. Throws ShapeError, DtypeError (for complex
/// inputs of other rows) and DeviceError, naming the row. Does not wait.
std::vector<Array> pointwise(const PointwiseRow& row,
                             std::span<const xp::ElementwiseArgument> inputs);

/// The same into `outputs`: of one shape, that of the inputs broadcast; no two of them share
/// elements, and none partly overlaps an input.
void pointwise_into(const PointwiseRow& row, std::span<const xp::ElementwiseArgument> inputs,
                    std::span<const Array> outputs);

}  // namespace rensa::detail

// Measures of a model's output, without gradients.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// The share of rows of y (n, classes) whose greatest element stands at the label t (n,), rows
/// labelled `ignore_label` left out; 0-d of y's dtype. Throws ShapeError, DtypeError, DeviceError.
[[nodiscard]] Variable accuracy(const Variable& y, const Variable& t,
                                std::optional<std::int64_t> ignore_label = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa

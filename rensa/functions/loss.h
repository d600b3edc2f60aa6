// Loss functions.
#pragma once

#include <cstdint>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

struct SoftmaxCrossEntropyOptions {
  bool normalize = true;           // divide by the labels counted, else by all
  std::int64_t ignore_label = -1;  // samples with this label count for nothing
};

/// The mean over samples of -log softmax(x)[t]: x (n, classes) floating, t (n,) integer; 0-d. A
/// label outside [0, classes) throws IndexError, on a GPU at the next wait. Throws ShapeError,
/// DtypeError, DeviceError.
[[nodiscard]] Variable softmax_cross_entropy(const Variable& x, const Variable& t,
                                             const SoftmaxCrossEntropyOptions& options = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// What functions of class scores and labels share.
#pragma once

#include "rensa/array/array.h"

namespace rensa::functions {

/// Throws ShapeError, DtypeError or DeviceError, naming `function`, unless `scores` is (n, classes)
/// of a floating dtype and `labels` (n,) of an integer one, on one device.
void check_scores_and_labels(const char* function, const Array& scores, const Array& labels);

}  // namespace rensa::functions

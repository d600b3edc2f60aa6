// What functions of class scores and labels share.
#pragma once

#include <cstdint>

#include "rensa/array/array.h"

namespace rensa::functions {

/// Throws ShapeError, DtypeError or DeviceError, naming `function`, unless `scores` is
/// (n, classes, ...) of a floating dtype and `labels` (n, ...) of an integer one, on one device.
void check_scores_and_labels(const char* function, const Array& scores, const Array& labels);

/// Where labels stand among `classes`, to gather by: 0 for those that are ignored. One outside
/// [0, classes), below 0 too, is out of the range that is gathered from, and throws IndexError
/// there.
Array label_places(const Array& labels, std::int64_t classes, std::int64_t ignored);

}  // namespace rensa::functions

// Copies between views of one dtype and shape, byte for byte.
#pragma once

#include "rensa/core/array_view.h"

namespace rensa::host {

/// out = in; the two may be the same elements, not partly overlapping ones.
void copy_elements(const ArrayView& in, const ArrayView& out);

}  // namespace rensa::host

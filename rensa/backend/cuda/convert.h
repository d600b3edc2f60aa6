// Conversions of long contiguous arrays on a GPU.
#pragma once

#include "rensa/core/array_view.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

/// out = in, converted to out's dtype, where both are long and contiguous and `in` is real; false
/// where nothing was done.
bool convert_elements(const char* operation, const LaunchContext& context, ArrayView in,
                      ArrayView out);

}  // namespace rensa::cuda

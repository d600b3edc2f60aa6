// Copies that keep the dtype, and fills, on a GPU.
#pragma once

#include "rensa/core/array_view.h"
#include "rensa/core/scalar.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

/// out = in, of one shape and dtype on one device, bit for bit.
void copy_elements(const char* operation, const LaunchContext& context, const ArrayView& in,
                   const ArrayView& out);

/// Every element of out = value, converted to `compute` and then to out's dtype.
void fill_elements(const char* operation, const LaunchContext& context, const Scalar& value,
                   Dtype compute, const ArrayView& out);

}  // namespace rensa::cuda

// Copies of rows that begin at any address.
#pragma once

#include "rensa/core/array_view.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

/// out = in, whose elements along the last axis lie together in both, by vectors of 16 bytes. All
/// addresses, strides of outer axes and (but for a single run) the bytes of a row are multiples of
/// `unit`. False, and nothing done, where units are as good: they are large, or rows short.
bool copy_rows(const char* operation, const LaunchContext& context, const ArrayView& in,
               const ArrayView& out, int unit);

}  // namespace rensa::cuda

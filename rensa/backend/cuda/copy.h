// Copies that keep the dtype, and fills, on a GPU.
#pragma once

#include "rensa/core/array_view.h"
#include "rensa/core/scalar.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

/// out = in, of one shape and dtype on one device, bit for bit.
void copy_elements(const char* operation, const LaunchContext& context, const ArrayView& in,
                   const ArrayView& out);

/// 16 bytes of elements of `dtype`: value, converted to `compute` and then to that.
void make_pattern(const Scalar& value, Dtype compute, Dtype dtype, unsigned char (&pattern)[16]);

/// Every element of out = value, converted to `compute` and then to out's dtype.
void fill_elements(const char* operation, const LaunchContext& context, const Scalar& value,
                   Dtype compute, const ArrayView& out);

/// to = from, some thousand bytes at most, and then *flag = turn, by a kernel of one block: towards
/// page-locked memory it starts behind other kernels sooner than a copy engine does, and the host
/// sees the flag sooner than the driver says that the kernel is over.
void copy_few_bytes(const char* operation, const LaunchContext& context, const void* from, void* to,
                    std::int64_t nbytes, unsigned* flag, unsigned turn);

}  // namespace rensa::cuda

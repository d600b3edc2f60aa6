// The compute types and the dtypes whose elements are stored as their values are.
#pragma once

#include "rensa/core/ufunc_info.h"

namespace rensa {

inline constexpr int kNumComputeTypes = 6;

/// The dtype whose elements are stored as values of `type` are: int64 for i64 and so on.
constexpr Dtype value_dtype(ComputeType type) {
  constexpr Dtype dtypes[kNumComputeTypes] = {Dtype::int64,   Dtype::uint64,    Dtype::float32,
                                              Dtype::float64, Dtype::complex64, Dtype::complex128};
  return dtypes[static_cast<int>(type)];
}

}  // namespace rensa

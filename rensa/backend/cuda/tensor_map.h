// What kernels of boxes.cuh need to know of a matrix.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "rensa/core/dtype.h"

namespace rensa::cuda {

/// `batch` matrices of `lines` lines, of `width` elements that lie together; strides in elements.
struct BatchOfMatrices {
  const void* data;  // at a multiple of 16 bytes
  Dtype dtype;       // float32, float16 or bfloat16
  std::int64_t width, lines, batch;
  std::int64_t line_stride, batch_stride;  // of multiples of 16 bytes; the last of 0: one matrix
  bool to_tf32 = false;                    // boxes bring the nearest TF32 numbers of float32
};

/// Bytes at a multiple of which a box begins in shared memory.
inline constexpr int kBoxAlignment = 1024;

/// The map by which boxes of `box_width` x `box_lines` elements of it are brought, as boxes.cuh
/// says (CUDA's cuTensorMapEncodeTiled); a box's line has 32, 64 or a multiple of 128 bytes. Throws
/// CudaError, with `operation`, where the driver refuses.
CUtensorMap tensor_map(const char* operation, const BatchOfMatrices& x, int box_width,
                       int box_lines);

}  // namespace rensa::cuda

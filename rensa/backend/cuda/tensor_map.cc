#include "rensa/backend/cuda/tensor_map.h"

#include <fmt/format.h>

#include "rensa/backend/cuda/driver.h"
#include "rensa/core/error.h"

namespace rensa::cuda {

namespace {

CUtensorMapDataType type_of(const BatchOfMatrices& x) {
  if (x.dtype == Dtype::float16) return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if (x.dtype == Dtype::bfloat16) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  return x.to_tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

CUtensorMapSwizzle swizzle_of(std::int64_t bytes) {
  if (bytes > 128) return CU_TENSOR_MAP_SWIZZLE_NONE;
  if (bytes == 32) return CU_TENSOR_MAP_SWIZZLE_32B;
  return bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B;
}

}  // namespace

CUtensorMap tensor_map(const char* operation, const BatchOfMatrices& x, int box_width,
                       int box_lines) {
  std::int64_t size = itemsize(x.dtype);
  bool one = x.batch == 1 || x.batch_stride == 0;
  auto unsigned64 = [](std::int64_t n) { return static_cast<cuuint64_t>(n); };
  cuuint64_t extents[] = {unsigned64(x.width), unsigned64(x.lines), unsigned64(one ? 1 : x.batch)};
  std::int64_t next = one ? x.lines * x.line_stride : x.batch_stride;
  cuuint64_t strides[] = {unsigned64(x.line_stride * size), unsigned64(next * size)};
  cuuint32_t box[] = {static_cast<cuuint32_t>(box_width), static_cast<cuuint32_t>(box_lines), 1};
  cuuint32_t steps[] = {1, 1, 1};
  CUtensorMap map;
  CUresult result = driver().tensor_map_encode(
      &map, type_of(x), 3, const_cast<void*>(x.data), extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(box_width * size),
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw CudaError(
        fmt::format("{}: the CUDA driver has no map of {} matrices of {} x {} {} with strides {} "
                    "and {} in boxes of {} x {}: {}",
                    operation, x.batch, x.lines, x.width, dtype_name(x.dtype), x.line_stride,
                    x.batch_stride, box_lines, box_width, driver_error_text(result)));
  }
  return map;
}

}  // namespace rensa::cuda

// The kernels around a captured step.
#include "rensa/backend/cuda/capture_kernels.h"

#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

namespace {

// One copy, by all threads of the grid, in units of 16 bytes where both ends allow it.
__device__ __forceinline__ void copy_by_grid(const CaptureCopy& copy) {
  long long thread = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  long long threads = gridDim.x * static_cast<long long>(blockDim.x);
  const char* src = static_cast<const char*>(copy.src);
  char* dst = static_cast<char*>(copy.dst);
  bool vector =
      (reinterpret_cast<unsigned long long>(src) | reinterpret_cast<unsigned long long>(dst)) %
          16 ==
      0;
  long long vectors = vector ? copy.bytes / 16 : 0;
  for (long long i = thread; i < vectors; i += threads) {
    reinterpret_cast<uint4*>(dst)[i] = reinterpret_cast<const uint4*>(src)[i];
  }
  for (long long i = 16 * vectors + thread; i < copy.bytes; i += threads) dst[i] = src[i];
}

__global__ void __launch_bounds__(kBlock) prologue(const __grid_constant__ PrologueParams params) {
  wait_for_previous();
  if (blockIdx.x == 0 && threadIdx.x < params.num_scalars) {
    static_cast<unsigned long long*>(params.scalar_block)[threadIdx.x] =
        params.scalars[threadIdx.x];
  }
  for (int i = 0; i < params.num_copies; ++i) copy_by_grid(params.copies[i]);
}

__global__ void __launch_bounds__(kBlock)
    more_scalars(const __grid_constant__ MoreScalarsParams params) {
  wait_for_previous();
  auto* block = static_cast<unsigned long long*>(params.scalar_block);
  for (int i = static_cast<int>(threadIdx.x); i < params.num_scalars; i += kBlock) {
    block[i] = params.scalars[i];
  }
}

__global__ void __launch_bounds__(kBlock) copies(const __grid_constant__ CopiesParams params) {
  wait_for_previous();
  for (int i = 0; i < params.num_copies; ++i) copy_by_grid(params.copies[i]);
}

__device__ __forceinline__ unsigned long long number_of(const CrossingParams& params, int i) {
  return *params.launch * params.numbers_of_a_launch + params.marks[i].number;
}

__global__ void tell(const __grid_constant__ CrossingParams params) {
  wait_for_previous();
  int i = static_cast<int>(threadIdx.x);
  if (i < params.num_marks) store_release(params.marks[i].word, number_of(params, i));
}

__global__ void await(const __grid_constant__ CrossingParams params) {
  wait_for_previous_alone();
  int i = static_cast<int>(threadIdx.x);
  if (i >= params.num_marks) return;
  unsigned long long number = number_of(params, i);
  while (load_acquire(params.marks[i].word) < number) {}
}

static_assert(kMaxCaptureScalars <= kBlock);
static_assert(sizeof(MoreScalarsParams) <= 4096);  // what a kernel's arguments may take

}  // namespace

const void* prologue_kernel() { return reinterpret_cast<const void*>(&prologue); }
const void* more_scalars_kernel() { return reinterpret_cast<const void*>(&more_scalars); }
const void* copies_kernel() { return reinterpret_cast<const void*>(&copies); }
const void* tell_kernel() { return reinterpret_cast<const void*>(&tell); }
const void* await_kernel() { return reinterpret_cast<const void*>(&await); }

CaptureLaunch capture_launch(long long bytes) {
  long long blocks = ceil_div(bytes, 16 * kBlock);
  return {static_cast<unsigned>(std::clamp<long long>(blocks, 1, 8 * kMultiprocessors)), kBlock};
}

}  // namespace rensa::cuda

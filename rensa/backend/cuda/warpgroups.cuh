// Products that a warpgroup, four warps, has the tensor cores compute while it does other work
// (wgmma). Hopper alone: the code is compiled for sm_90a.
#pragma once

#include <cstdint>

#include "rensa/backend/cuda/tensor_cores.cuh"

namespace rensa::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define RENSA_HAS_WARPGROUPS 1

/// Where the tensor cores find a matrix in shared memory: lines of 128 bytes along k, from a
/// multiple of kBoxAlignment bytes on, whose chunks are placed as Box places them.
__device__ __forceinline__ std::uint64_t matrix_in_lines(const void* data) {
  constexpr std::uint64_t kSwizzled = std::uint64_t{1} << 62, kEightLines = 1024;
  return kSwizzled | kEightLines / 16 << 32 | std::uint64_t{1} << 16 | shared_address(data) / 16;
}

/// c (64, 64) = a (64, 8) @ b (64, 8)^T of TF32, to which c as it was is added where `add`. b is
/// matrix_in_lines, plus 2 for each eight of k. A warp has sixteen rows of a and c: its words of a
/// are those of multiply_words, those of c[4 * j] to c[4 * j + 3] columns 8 * j and on likewise.
/// Neither may be touched before wait_for_products.
__device__ __forceinline__ void multiply_later(float (&c)[32], const unsigned (&a)[4],
                                               std::uint64_t b, bool add) {
#define RENSA_EIGHT(i)                                                                        \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7])
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1;\n}"
      : RENSA_EIGHT(0), RENSA_EIGHT(8), RENSA_EIGHT(16), RENSA_EIGHT(24)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
#undef RENSA_EIGHT
}

/// Before the first of a group: what the threads have written to their registers is seen.
__device__ __forceinline__ void open_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// Makes a group of the products since the last one.
__device__ __forceinline__ void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all groups but the newest N. c is what the oldest of these gives.
template <int N> __device__ __forceinline__ void wait_for_products(float (&c)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#pragma unroll
  for (float& value : c) asm volatile("" : "+f"(value)::"memory");
}
/// What a thread has written to shared memory is seen by products that begin behind a barrier.
__device__ __forceinline__ void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#else
#define RENSA_HAS_WARPGROUPS 0
#endif

}  // namespace rensa::cuda

// Boxes (TMA): parts of an operand, some lines of it and some of k, that the GPU brings to shared
// memory by itself, at one thread's word. Hopper and later.
#pragma once

#include <cstdint>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/tensor_cores.cuh"
#include "rensa/backend/cuda/tensor_map.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define RENSA_HAS_BOXES 1
#else
#define RENSA_HAS_BOXES 0
#endif

namespace rensa::cuda {

/// A box of `Inner` elements along memory and `Outer` lines, in shared memory from a multiple of
/// kBoxAlignment bytes on. In lines of up to 128 bytes the 16-byte chunks change places with each
/// other, by the line's number, such that chunks in one place of eight lines lie in different banks
/// (CUDA's swizzle).
template <class T, int Inner, int Outer> struct Box {
  static constexpr int kInner = Inner, kOuter = Outer;
  static constexpr int kBytes = Inner * static_cast<int>(sizeof(T)), kSize = Inner * Outer;
  static_assert(kBytes == 32 || kBytes == 64 || kBytes % 128 == 0);

  /// Where an element lies, in elements from the box's first.
  static __device__ __forceinline__ int offset(int inner, int outer) {
    constexpr unsigned kChunk = 16 / sizeof(T);
    auto i = static_cast<unsigned>(inner), o = static_cast<unsigned>(outer);
    if constexpr (kBytes > 128) {
      return static_cast<int>(o * kInner + i);
    } else {
      unsigned moved = o / (128 / kBytes) % (kBytes / 16);
      return static_cast<int>(o * kInner + ((i / kChunk) ^ moved) * kChunk + i % kChunk);
    }
  }
};

#if RENSA_HAS_BOXES

/// A barrier in shared memory that waits for threads or for bytes of boxes, again and again: a
/// round ends when all arrivals and bytes that it expects are there.
class BoxBarrier {
 public:
  /// By one thread, once; closed by open_barriers() before anyone else uses it.
  __device__ __forceinline__ void init(int arrivals = 1) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals)
                 : "memory");
  }
  /// An arrival. Who waits sees what the thread, and its warp before a __syncwarp(), has written,
  /// and may overwrite what they have read.
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  /// An arrival, that boxes of so many bytes come; other threads may bring them already.
  __device__ __forceinline__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
  }
  /// Waits for the end of a round, of which `parity` is 0 for the first, 1 for the second, and so
  /// on in turns.
  __device__ __forceinline__ void wait(int parity) {
    unsigned over = 0;
    while (!over) {
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}"
          : "=r"(over)
          : "r"(address()), "r"(parity)
          : "memory");
    }
  }
  __device__ __forceinline__ unsigned address() { return shared_address(&word_); }

 private:
  std::uint64_t word_;
};

/// Lets boxes reach barriers that the thread has made.
__device__ __forceinline__ void open_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Has the box that begins at (inner, outer) of matrix `batch` brought to `to`, with zeros beyond
/// the matrix; `barrier` counts its bytes.
__device__ __forceinline__ void bring_box(void* to, const CUtensorMap& map, int inner, int outer,
                                          int batch, BoxBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
      "l"(&map), "r"(inner), "r"(outer), "r"(batch), "r"(barrier.address())
      : "memory");
}
/// Has the map itself brought to where it is read.
__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

#endif

}  // namespace rensa::cuda

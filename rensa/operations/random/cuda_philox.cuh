// What the kernels share that fill arrays from Philox's words. What element i gets follows from i
// alone (core/philox.h): a thread makes the elements of four words, or of eight where they are
// doubles.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/random.cuh"
#include "rensa/core/philox.h"

namespace rensa::cuda {

inline constexpr int kElements = 4;  // of one pack, of one word each or of two
inline constexpr int kPacks = 4;     // of one thread

template <int kWords> struct Words { unsigned int word[kElements * kWords]; };

/// The words of the elements [4 * i, 4 * i + 4).
template <int kWords>
__device__ __forceinline__ Words<kWords> words_of(unsigned long long seed,
                                                  unsigned long long offset, std::int64_t i) {
  Words<kWords> result;
  unsigned long long counter = offset + i * kWords;
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    PhiloxWords words = philox(seed, counter + k);
#pragma unroll
    for (int j = 0; j < 4; ++j) result.word[4 * k + j] = words.word[j];
  }
  return result;
}

template <class V> inline constexpr int kWordsOf = sizeof(V) == 8 ? 2 : 1;

template <class V> __device__ __forceinline__ V uniform_of(const Words<kWordsOf<V>>& words, int i) {
  if constexpr (sizeof(V) == 8) return uniform_double(words.word[2 * i], words.word[2 * i + 1]);
  else return uniform_float(words.word[i]);
}

struct RandomArgs {
  HostScalar seed, offset;
  char* out;
  Dtype dtype;
  std::int64_t size;
  double a, b;                   // low, high or loc, scale
  unsigned long long low, span;  // of integers
  bool vector;                   // four elements move in one load or store
};

// A filler turns the words of a pack into its elements; its Args are RandomArgs or derive from
// them.

/// Stores the packs of a warp, of 32 bytes and next to each other. The whole warp calls it: two
/// threads store one of their packs and then the other, half of it each. Were a thread to store the
/// halves of its own, memory would be written in twice as many pieces.
template <class T> __device__ __forceinline__ void store_pair(T* out, const Pack<T, 4>& pack) {
  Pack<ulonglong2, 2> halves;
  memcpy(&halves, &pack, sizeof(pack));
  bool odd = threadIdx.x % 2 != 0;
  ulonglong2 got = shuffle_xor(odd ? halves.value[0] : halves.value[1], 1);
  auto* pair = reinterpret_cast<ulonglong2*>(out) - (odd ? 2 : 0);
  pair[odd] = odd ? got : halves.value[0];
  pair[2 + odd] = odd ? halves.value[1] : got;
}

/// Stores the pack of the elements [4 * i, 4 * i + 4).
template <class T>
__device__ __forceinline__ void store_elements(const RandomArgs& args, std::int64_t i,
                                               const Pack<T, kElements>& pack) {
  std::int64_t begin = i * kElements;
  T* out = reinterpret_cast<T*>(args.out) + begin;
  if constexpr (sizeof(pack) == 32) {
    // Every thread of the warp has a whole pack.
    if (args.vector && begin - threadIdx.x % 32 * kElements + 32 * kElements <= args.size) {
      return store_pair(out, pack);
    }
  }
  store_pack<T, kElements>(out, pack, args.size - begin, args.vector);
}

template <class Filler, class T>
__device__ __forceinline__ void fill_pack(const typename Filler::Args& args, std::int64_t i,
                                          const Words<Filler::kWords>& words) {
  if (i * kElements >= args.size) return;
  Pack<T, kElements> pack;
  Filler::template fill<T>(args, i, words, pack);
  store_elements(args, i, pack);
}

template <class Filler, class T>
__global__ void __launch_bounds__(kBlock)
    fill_random(const __grid_constant__ typename Filler::Args args) {
  wait_for_previous();
  unsigned long long seed = integer_of(args.seed), offset = integer_of(args.offset);
  std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kBlock * kPacks) + threadIdx.x;
  // Words of several packs side by side, without a branch between, share one key schedule.
  constexpr int kTogether = kPacks / Filler::kWords;
#pragma unroll
  for (int k = 0; k < kPacks; k += kTogether) {
    Words<Filler::kWords> words[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      words[j] = words_of<Filler::kWords>(seed, offset, first + (k + j) * kBlock);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      fill_pack<Filler, T>(args, first + (k + j) * kBlock, words[j]);
    }
  }
}

/// Queues a kernel of fill_random. Static, as launch_kernel is.
template <class Args>
static void launch_random(const char* operation, const LaunchContext& context, void (*kernel)(Args),
                          const Args& args) {
  std::int64_t grid = ceil_div(args.size, std::int64_t{kElements} * kPacks * kBlock);
  launch_kernel(operation, context, kernel, grid, kBlock, args);
}

}  // namespace rensa::cuda

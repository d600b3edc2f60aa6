// The scan of one long row, one read and one write per element, for the files that make scans. The
// blocks of one wave take tiles in turn, block by block and round by round. A tile needs the totals
// of the tiles since its block's last one, which all threads look up at once: no chain of blocks
// that wait for each other's sums (as in decoupled look-back: Merrill and Garland, "Single-pass
// parallel prefix scan with decoupled look-back", 2016), and the same bits every time. A block
// tells the total of its next tile, which has come to shared memory meanwhile, before it looks for
// what stands before the current one, so that hardly anyone waits.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/scan_functors.h"
#include "rensa/operations/scan/cuda_plan.h"

namespace rensa::cuda {

inline constexpr int kRowThreads = 512, kRowBlocks = 2;  // of a block; blocks of a multiprocessor
inline constexpr int kRowVectors = 8;                    // of 16 bytes that a thread has of a tile
inline constexpr int kRowRounds = 8;  // rounds whose totals are kept; a block is never 5 ahead

inline constexpr unsigned kRowPause = 100;  // ns between two looks; they burden the L2 cache

/// The total of a tile, with its round + 1.
template <class V> struct TileTotal {
  V value;
  unsigned round;
};
template <class V>
requires(sizeof(V) == 4) struct alignas(8) TileTotal<V> {  // written and read in one piece
  V value;
  unsigned round;
};

template <class V> struct ScanRowArgs {
  const V* in;
  V* out;
  TileTotal<V>* totals;  // [kRowRounds][blocks], zero
  std::int64_t n;
  bool vector;      // both may be accessed 16 bytes at a time
  bool prefetches;  // there is shared memory for a tile
};

template <class V> __device__ __forceinline__ void publish(TileTotal<V>* slot, TileTotal<V> total) {
  if constexpr (sizeof(V) == 4) {
    unsigned long long word;
    memcpy(&word, &total, 8);
    *reinterpret_cast<volatile unsigned long long*>(slot) = word;
  } else {
    slot->value = total.value;
    __threadfence();
    *const_cast<volatile unsigned*>(&slot->round) = total.round;
  }
}

/// The total that `slot` gets in `round`, once it is there.
template <class V> __device__ __forceinline__ V await(const TileTotal<V>* slot, unsigned round) {
  if constexpr (sizeof(V) == 4) {
    for (;; __nanosleep(kRowPause)) {
      TileTotal<V> total;
      unsigned long long word = *reinterpret_cast<const volatile unsigned long long*>(slot);
      memcpy(&total, &word, 8);
      if (total.round == round) return total.value;
    }
  } else {
    while (*const_cast<const volatile unsigned*>(&slot->round) != round) __nanosleep(kRowPause);
    __threadfence();
    unsigned words[sizeof(V) / 4];
#pragma unroll
    for (unsigned i = 0; i < sizeof(V) / 4; ++i) {
      words[i] = reinterpret_cast<const volatile unsigned*>(&slot->value)[i];
    }
    V value;
    memcpy(&value, words, sizeof(V));
    return value;
  }
}

/// What a thread has of a tile: kRowVectors vectors, a warp's next to each other.
template <class V, class F> struct TilePart {
  static constexpr int W = 16 / sizeof(V);
  Pack<V, W> vectors[kRowVectors];

  /// Begins to copy a whole tile, of which `in` is what the thread has, into shared memory. What
  /// stands there is read and written by the thread itself alone.
  __device__ __forceinline__ static void prefetch(uint4* shared, const V* in) {
#pragma unroll
    for (int i = 0; i < kRowVectors; ++i) {
      __pipeline_memcpy_async(shared + i * kRowThreads + threadIdx.x, in + i * 32 * W, 16);
    }
    __pipeline_commit();
  }
  /// The warp's total of a tile that is told ahead: of what it has in shared memory once that has
  /// come, or in `vectors`. The same bits both ways.
  __device__ __forceinline__ static V total(const uint4* shared) {
    __pipeline_wait_prior(0);
    return total_of([&](int i) {
      Pack<V, W> vector;
      memcpy(&vector, shared + i * kRowThreads + threadIdx.x, 16);
      return vector;
    });
  }
  __device__ __forceinline__ V total() const {
    return total_of([&](int i) { return vectors[i]; });
  }
  template <class Vector> __device__ __forceinline__ static V total_of(Vector&& vector_at) {
    V sum = F::template identity<V>();
#pragma unroll
    for (int i = 0; i < kRowVectors; ++i) {
      Pack<V, W> vector = vector_at(i);
#pragma unroll
      for (int j = 0; j < W; ++j) sum = F()(sum, vector.value[j]);
    }
    return from_lane(scan_lanes<F>(sum), 31);
  }
  __device__ __forceinline__ void take(const uint4* shared) {
#pragma unroll
    for (int i = 0; i < kRowVectors; ++i) {
      memcpy(&vectors[i], shared + i * kRowThreads + threadIdx.x, 16);
    }
  }
  __device__ __forceinline__ void load(const V* in, std::int64_t left, bool vector) {
#pragma unroll
    for (int i = 0; i < kRowVectors; ++i) {
      vectors[i] =
          load_pack<V, W>(in + i * 32 * W, left - i * 32 * W, vector, F::template identity<V>());
    }
  }
  __device__ __forceinline__ void store(V* out, std::int64_t left, bool vector) const {
#pragma unroll
    for (int i = 0; i < kRowVectors; ++i) {
      store_pack<V, W>(out + i * 32 * W, vectors[i], left - i * 32 * W, vector);
    }
  }
  /// Scans what the warp has; returns its total.
  __device__ __forceinline__ V scan_warp() {
    V upto[kRowVectors];
#pragma unroll
    for (int i = 0; i < kRowVectors; ++i) {
      V(&x)[W] = vectors[i].value;
#pragma unroll
      for (int j = 1; j < W; ++j) x[j] = F()(x[j - 1], x[j]);
      upto[i] = scan_lanes<F>(x[W - 1]);
    }
    V carry = F::template identity<V>();
#pragma unroll
    for (int i = 0; i < kRowVectors; ++i) {
      V before = shuffle_up(upto[i], 1);
      before = threadIdx.x % 32 == 0 ? carry : F()(carry, before);
#pragma unroll
      for (int j = 0; j < W; ++j) vectors[i].value[j] = F()(before, vectors[i].value[j]);
      carry = F()(carry, from_lane(upto[i], 31));
    }
    return carry;
  }
  __device__ __forceinline__ void add(V before) {
#pragma unroll
    for (auto& vector : vectors) {
#pragma unroll
      for (int j = 0; j < W; ++j) vector.value[j] = F()(before, vector.value[j]);
    }
  }
};

/// The values of all warps, of lane 0 each, joined; `before` gets those before the thread's warp.
template <class V, class F>
__device__ __forceinline__ V join_tile(V* shared, V value, V* before = nullptr) {
  return join_warps<F, kRowThreads>(shared, value, 0, F::template identity<V>(), before);
}

/// The totals of the tiles from the block's one of the last round to the one before its tile of
/// this round, joined over each warp.
template <class V, class F>
__device__ __forceinline__ V tiles_between(const TileTotal<V>* totals, unsigned round) {
  int blocks = gridDim.x, block = blockIdx.x;
  V sum = F::template identity<V>();
  for (int other = threadIdx.x; other < blocks; other += kRowThreads) {
    int at = block + other < blocks ? block + other : block + other - blocks;
    bool this_round = at < block;
    if (!this_round && round == 0) continue;
    unsigned from = this_round ? round : round - 1;
    sum = F()(sum, await(totals + from % kRowRounds * blocks + at, from + 1));
  }
  return from_lane(scan_lanes<F>(sum), 31);
}

template <class V, class F>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    scan_row(const __grid_constant__ ScanRowArgs<V> args) {
  wait_for_previous();
  using Part = TilePart<V, F>;
  constexpr int kWarps = kRowThreads / 32, kPart = Part::W * kRowVectors * 32;
  constexpr std::int64_t kTile = kPart * kWarps;
  // V may have a constructor, which shared memory cannot run.
  __shared__ alignas(16) char shared_bytes[3][kWarps * sizeof(V)];
  auto shared = [&](int i) { return reinterpret_cast<V*>(shared_bytes[i]); };
  extern __shared__ uint4 next_tile[];
  std::int64_t round_size = gridDim.x * kTile;
  std::int64_t first = blockIdx.x * kTile + threadIdx.x / 32 * kPart + threadIdx.x % 32 * Part::W;
  std::int64_t end = (blockIdx.x + 1) * kTile;  // of the tile
  auto tell = [&](unsigned round, V total) {
    TileTotal<V>* slots = args.totals + round % kRowRounds * gridDim.x;
    if (threadIdx.x == 0) publish(slots + blockIdx.x, {total, round + 1});
  };
  Part part;
  part.load(args.in + first, args.n - first, args.vector);
  V before, ahead = F::template identity<V>();  // of the tile; of all before the tile
  tell(0, join_tile<V, F>(shared(0), part.scan_warp(), &before));
  bool fetched = args.prefetches && end + round_size <= args.n;
  if (fetched) Part::prefetch(next_tile, args.in + first + round_size);
  for (unsigned round = 0;; ++round) {
    if (fetched) tell(round + 1, join_tile<V, F>(shared(1), Part::total(next_tile)));
    V between = tiles_between<V, F>(args.totals, round);
    ahead = F()(ahead, join_tile<V, F>(shared(2), between));
    part.add(F()(ahead, before));
    part.store(args.out + first, args.n - first, args.vector);
    first += round_size, end += round_size;
    if (end - kTile >= args.n) return;
    if (fetched) {
      part.take(next_tile);
    } else {
      part.load(args.in + first, args.n - first, args.vector);
      tell(round + 1, join_tile<V, F>(shared(1), part.total()));
    }
    V of_warp = part.scan_warp();
    fetched = args.prefetches && end + round_size <= args.n;
    if (fetched) Part::prefetch(next_tile, args.in + first + round_size);
    join_tile<V, F>(shared(0), of_warp, &before);
  }
}

/// Bytes that launch_scan_row wants as workspace.
template <class V> std::size_t scan_row_bytes(Device device) {
  return sizeof(TileTotal<V>) *
         static_cast<std::size_t>(kRowRounds * kRowBlocks * multiprocessors(device));
}

/// What a device, the current one, holds at once.
struct RowWave {
  int blocks = 0;        // 0: not known yet
  int shared_bytes = 0;  // of a block, for its next tile; 0 where the device has too few
};
template <class V, class F> static RowWave scan_row_wave(const char* name, Device device) {
  static std::array<std::atomic<RowWave>, kMaxGpus> waves;
  std::atomic<RowWave>& known = waves[static_cast<std::size_t>(device.index)];
  RowWave wave = known.load(std::memory_order_relaxed);
  if (wave.blocks > 0) return wave;
  constexpr int kTileBytes = kRowThreads * kRowVectors * 16, kStaticBytes = 1024;  // at most
  int each = 0;
  if (most_shared_memory(name, device) >= kTileBytes + kStaticBytes) {
    wave.shared_bytes = kTileBytes;
    allow_shared_memory(name, device, reinterpret_cast<const void*>(scan_row<V, F>));
  }
  RENSA_CUDA_CHECK(
      name, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &each, scan_row<V, F>, kRowThreads, static_cast<std::size_t>(wave.shared_bytes)));
  wave.blocks = std::min(each, kRowBlocks) * multiprocessors(device);
  known.store(wave, std::memory_order_relaxed);
  return wave;
}

/// Queues the scan of one row. Static, as launch_kernel is.
template <class V, class F>
static void launch_scan_row(const char* name, const V* in, V* out, std::int64_t n,
                            const LaunchContext& context) {
  constexpr std::int64_t kTile = kRowThreads * kRowVectors * 16 / sizeof(V);
  RowWave wave = scan_row_wave<V, F>(name, context.device);
  ScanRowArgs<V> args = {};
  args.in = in;
  args.out = out;
  args.totals = static_cast<TileTotal<V>*>(context.workspace);
  args.n = n;
  args.vector = is_aligned(in, 16) && is_aligned(out, 16);
  args.prefetches = args.vector && wave.shared_bytes > 0;
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3(static_cast<unsigned>(std::min<std::int64_t>(ceil_div(n, kTile), wave.blocks)));
  config.blockDim = dim3(kRowThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(wave.shared_bytes);
  config.stream = static_cast<cudaStream_t>(context.handle);
  // All blocks are resident, or some would wait for ones that never start.
  cudaLaunchAttribute resident = {};
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = 1;
  config.attrs = &resident;
  config.numAttrs = 1;
  RENSA_CUDA_CHECK(
      name, cudaMemsetAsync(args.totals, 0, scan_row_bytes<V>(context.device), config.stream));
  RENSA_CUDA_CHECK(name, cudaLaunchKernelEx(&config, scan_row<V, F>, args));
}

}  // namespace rensa::cuda

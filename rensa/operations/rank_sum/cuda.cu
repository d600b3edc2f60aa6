// Sums over GPUs that reach each other's memory: each reads its part from all and writes the sum to
// all, so that as much goes over each link as in a ring, in one launch a GPU.
#include <algorithm>
#include <span>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/rank_sum/rank_sum.h"

namespace rensa::cuda {

namespace {

using operations::RankSum;

constexpr int kMaxPieces = 64, kMaxPointers = 256;  // of a launch: 4 KiB of arguments hold them
constexpr int kThreads = 512;
constexpr unsigned kBlocks = 64;  // enough for a link; the other processors go on with their work

struct SumPiece {
  long long size;
  unsigned first_chunk;
};

struct RankSumArgs {
  void* data[kMaxPointers];  // those of the first piece by rank, then those of the next
  SumPiece pieces[kMaxPieces];
  unsigned count, ranks, chunks;
};
static_assert(sizeof(RankSumArgs) <= 4096);

template <class T> constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
// That a thread has under way from each rank: they stay in registers.
template <int kMostRanks> constexpr int kVectors = kMostRanks <= 4 ? 4 : 16 / kMostRanks;
template <class T, int kMostRanks> constexpr int kChunk = kThreads* kVectors<kMostRanks>* kWidth<T>;

// Of a chunk's elements, `left` of which are there.
template <class T, int kMostRanks>
__device__ __forceinline__ void sum_chunk(void* const* data, unsigned ranks, long long begin,
                                          long long left) {
  constexpr int W = kWidth<T>;
  constexpr int kStep = kThreads * W;
  constexpr int N = kVectors<kMostRanks>;
  bool whole = left % W == 0;
  for (unsigned r = 0; r < ranks; ++r) {
    whole = whole && reinterpret_cast<unsigned long long>(data[r]) % 16 == 0;
  }
  long long first = begin + threadIdx.x * W;
  left -= threadIdx.x * W;
  Vector<T, W> vectors[kMostRanks][N];
#pragma unroll
  for (int r = 0; r < kMostRanks; ++r) {
    if (r >= static_cast<int>(ranks)) continue;
    load_vectors(vectors[r], static_cast<const T*>(data[r]) + first, left, kStep, whole, T());
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    Pack<T, W> result;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      ComputeOf<T> sum = vectors[0][k].value(j);
#pragma unroll
      for (int r = 1; r < kMostRanks; ++r) {
        if (r < static_cast<int>(ranks)) sum += vectors[r][k].value(j);
      }
      result.value[j] = convert<T>(sum);
    }
    for (unsigned r = 0; r < ranks; ++r) {
      store_pack<T, W>(static_cast<T*>(data[r]) + first + k * kStep, result, left - k * kStep,
                       whole);
    }
  }
}

template <class T, int kMostRanks>
__global__ void __launch_bounds__(kThreads) sum_pieces(const __grid_constant__ RankSumArgs args) {
  wait_for_previous();
  unsigned piece = 0;
  for (unsigned chunk = blockIdx.x; chunk < args.chunks; chunk += gridDim.x) {
    while (piece + 1 < args.count && args.pieces[piece + 1].first_chunk <= chunk) ++piece;
    long long begin =
        static_cast<long long>(chunk - args.pieces[piece].first_chunk) * kChunk<T, kMostRanks>;
    sum_chunk<T, kMostRanks>(args.data + piece * args.ranks, args.ranks, begin,
                             args.pieces[piece].size - begin);
  }
}

template <class T, int kMostRanks>
void launch_pieces(const LaunchContext& context, std::span<const Operand> pieces, int ranks) {
  RankSumArgs args{};
  args.ranks = static_cast<unsigned>(ranks);
  for (std::size_t i = 0; i < pieces.size(); ++i) args.data[i] = pieces[i].view.data;
  for (std::size_t i = 0; i < pieces.size(); i += args.ranks) {
    long long size = pieces[i].view.size(), chunk = kChunk<T, kMostRanks>;
    args.pieces[args.count++] = {size, args.chunks};
    args.chunks += static_cast<unsigned>((size + chunk - 1) / chunk);
  }
  launch_kernel("rank_sum", context, sum_pieces<T, kMostRanks>, std::min(args.chunks, kBlocks),
                kThreads, args);
}

template <class T>
void launch_pieces(const LaunchContext& context, std::span<const Operand> pieces, int ranks) {
  auto launch = ranks <= 2   ? launch_pieces<T, 2>
                : ranks <= 4 ? launch_pieces<T, 4>
                : ranks <= 8 ? launch_pieces<T, 8>
                             : launch_pieces<T, kMaxGpus>;
  launch(context, pieces, ranks);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

// Pieces of one dtype that stand behind each other go in one launch.
void RankSum::run_cuda(const cuda::LaunchContext& context) {
  using namespace cuda;
  auto n = static_cast<std::size_t>(ranks);
  std::size_t most = std::min<std::size_t>(kMaxPieces, kMaxPointers / n) * n;
  std::span<const Operand> rest(pieces);
  while (!rest.empty()) {
    Dtype dtype = rest[0].view.dtype;
    std::size_t take = n;
    while (take < std::min(most, rest.size()) && rest[take].view.dtype == dtype) take += n;
    visit_floating(
        dtype, [&](auto zero) { launch_pieces<decltype(zero)>(context, rest.first(take), ranks); });
    rest = rest.subspan(take);
  }
}

}  // namespace rensa::operations

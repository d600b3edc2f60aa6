// The first of sorted rows on a GPU: a warp holds a row in registers and looks for the least key
// behind the last one found, as often as there are places to find.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/sort_keys.h"
#include "rensa/operations/sort/top_k.h"
#include "rensa/portable/block.h"

namespace rensa::cuda {

namespace {

using Word = unsigned long long;

template <class T> struct TopKArgs {
  const T* in;
  long long* order;
  unsigned rows, n, k;
  KeyOf<T> flip;  // all ones for the reverse order
};

// The least of a lane's words, keys with their places below them, that is not below `from`.
template <class Key, int kHeld>
__device__ __forceinline__ Word least_from(const Key (&keys)[kHeld], Word from, unsigned n) {
  Word best = ~Word{0};
#pragma unroll
  for (int u = 0; u < kHeld; ++u) {
    unsigned place = u * 32 + threadIdx.x % 32;
    Word word = static_cast<Word>(keys[u]) << 32 | place;
    if (place < n && word >= from && word < best) best = word;
  }
  return best;
}

template <class T, int kHeld>
__global__ void __launch_bounds__(kBlock) find_top(const __grid_constant__ TopKArgs<T> args) {
  wait_for_previous();
  unsigned row = blockIdx.x * (kBlock / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= args.rows) return;
  const T* in = args.in + static_cast<std::int64_t>(row) * args.n;
  KeyOf<T> keys[kHeld];
#pragma unroll
  for (int u = 0; u < kHeld; ++u) {
    unsigned i = u * 32 + lane;
    keys[u] = sort_key(i < args.n ? in[i] : T(0), true) ^ args.flip;
  }
  Word own = least_from(keys, 0, args.n);
  long long* order = args.order + static_cast<std::int64_t>(row) * args.k;
  for (unsigned j = 0; j < args.k; ++j) {
    Word least = own;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      Word other = shuffle_xor(least, d);
      least = other < least ? other : least;
    }
    if (lane == 0) order[j] = static_cast<unsigned>(least);
    if (own == least) own = least_from(keys, least + 1, args.n);
    __syncwarp();
  }
}

template <class T> void run(const operations::TopK& op, const LaunchContext& context) {
  const Shape& shape = op.in.view.shape;
  std::int64_t k = op.order.view.shape[1], n = shape[1];
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;  // of one launch
  for (std::int64_t first = 0; first < shape[0]; first += kMostRows) {
    std::int64_t rows = shape[0] - first < kMostRows ? shape[0] - first : kMostRows;
    TopKArgs<T> args = {
        op.in.view.as<T>() + first * n, op.order.view.as<long long>() + first * k,
        static_cast<unsigned>(rows),    static_cast<unsigned>(n),
        static_cast<unsigned>(k),       op.descending ? KeyOf<T>(~KeyOf<T>(0)) : KeyOf<T>(0)};
    auto kernel = n <= 256 ? find_top<T, 8> : n <= 1024 ? find_top<T, 32> : find_top<T, 64>;
    launch_kernel(op.name(), context, kernel, ceil_div(rows, kBlock / 32), kBlock, args);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void TopK::run_cuda(const cuda::LaunchContext& context) {
  if (order.view.size() == 0) return;
  switch (in.view.dtype) {
    case Dtype::float16: return cuda::run<half_t>(*this, context);
    case Dtype::bfloat16: return cuda::run<bfloat16_t>(*this, context);
    default: return cuda::run<float>(*this, context);
  }
}

}  // namespace rensa::operations

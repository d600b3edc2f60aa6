// The kernels of products with one short dimension.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/matmul/cuda_dot_rows.cuh"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_skinny.h"

namespace rensa::cuda {

namespace {

struct DotArgs : SkinnyArgs {
  using Rows = NoRows;
};

// k is short, and rounded up to K, a multiple of four; what is added is zeros.

constexpr int kOuterThreads = 128;  // one per column
constexpr int kOuterRows = 8;

template <class T, int K>
__global__ void __launch_bounds__(kOuterThreads) outer_kernel(const __grid_constant__ OuterArgs p) {
  __shared__ alignas(16) float tile[kOuterRows][K];  // of a
  static_assert(kOuterRows * K <= kOuterThreads);
  const T* left = static_cast<const T*>(p.a) + blockIdx.z * p.a_batch;
  const T* right = static_cast<const T*>(p.b) + blockIdx.z * p.b_batch;
  T* c = static_cast<T*>(p.c) + blockIdx.z * p.c_batch;
  const T* gate = p.gate ? static_cast<const T*>(p.gate) + blockIdx.z * p.c_batch : nullptr;
  int column_blocks = (p.n + kOuterThreads - 1) / kOuterThreads;
  int row0 = static_cast<int>(blockIdx.x) / column_blocks * kOuterRows;
  int j = static_cast<int>(blockIdx.x) % column_blocks * kOuterThreads + threadIdx.x;
  float b[K];
  auto load_b = [&] {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      b[k] = k < p.k && j < p.n ? convert<float>(right[k * p.b_k + j]) : 0.0f;
    }
  };
  if (p.b_settled) load_b();
  wait_for_previous();
  if (!p.b_settled) load_b();
  std::int64_t first = row0 * p.c_ld + j;
  unsigned open = 0;  // a bit for each row
#pragma unroll
  for (int r = 0; r < kOuterRows; ++r) {
    bool there = row0 + r < p.m && j < p.n;
    if (there && is_open(gate, first + r * p.c_ld)) open |= 1u << r;
  }
  float bias = j < p.n ? bias_of(static_cast<const T*>(p.bias), j) : 0.0f;
  if (threadIdx.x < kOuterRows * K) {
    int i = row0 + threadIdx.x / K, k = threadIdx.x % K;
    bool there = i < p.m && k < p.k;
    tile[threadIdx.x / K][k] = there ? convert<float>(left[i * p.a_row + k * p.a_k]) : 0.0f;
  }
  __syncthreads();
  if (j >= p.n) return;
#pragma unroll
  for (int r = 0; r < kOuterRows; ++r) {
    if (row0 + r >= p.m) break;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < K; k += 4) {
      auto a = *reinterpret_cast<const Pack<float, 4>*>(&tile[r][k]);
#pragma unroll
      for (int w = 0; w < 4; ++w) sum = fmaf(a.value[w], b[k + w], sum);
    }
    T value = finish<T>(sum, p.alpha, bias, p.activation);
    c[first + r * p.c_ld] = open >> r & 1 ? value : T(0.0f);
  }
}

template <int K>
void launch_outer_of(Dtype dtype, const OuterArgs& args, const LaunchContext& context) {
  auto blocks = ceil_div(args.n, kOuterThreads) * ceil_div(args.m, kOuterRows);
  dim3 grid(static_cast<unsigned>(blocks), 1, static_cast<unsigned>(args.batch));
  auto kernel = dtype == Dtype::float16    ? outer_kernel<half_t, K>
                : dtype == Dtype::bfloat16 ? outer_kernel<bfloat16_t, K>
                                           : outer_kernel<float, K>;
  launch_kernel("matmul", context, kernel, grid, kOuterThreads, args);
}

}  // namespace

void launch_dot(const SkinnyArgs& args, bool vectors, const LaunchContext& context) {
  launch_dot_rows(DotArgs{args}, vectors, context);
}

void launch_outer(Dtype dtype, const OuterArgs& args, const LaunchContext& context) {
  if (args.k <= 4) launch_outer_of<4>(dtype, args, context);
  else if (args.k <= 8) launch_outer_of<8>(dtype, args, context);
  else if (args.k <= 12) launch_outer_of<12>(dtype, args, context);
  else launch_outer_of<16>(dtype, args, context);
}

}  // namespace rensa::cuda

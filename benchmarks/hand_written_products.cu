// The row "1000 products with norm, each to the host" of arrays.cc written by hand with nothing but
// the runtime: three kernels per product, the last of which writes the norm to page-locked memory
// that the host looks at. "overlapped" is the same with each kernel brought to the processors while
// the one before it ends (programmatic dependent launches).
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "hand_written.cuh"

namespace {

constexpr int kCount = 1000, kSide = 100, kTile = 32;

struct Args {
  const float *a, *b;
  float *c, *norm, *landing;
  unsigned* flag;
  unsigned turn;
};

/// Lets the next kernel come, and waits for the one before this to be done. Nothing in code for
/// GPUs before Hopper, nor where kernels are launched as usual.
__device__ __forceinline__ void overlap() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

/// c = a b, a tile of 32 x 32 in a block of 256: all of k is read at once.
__global__ void __launch_bounds__(256) product(const __grid_constant__ Args p) {
  __shared__ alignas(8) float a[kSide][kTile + 2], b[kSide][kTile + 2];
  int row0 = int(blockIdx.y) * kTile, column0 = int(blockIdx.x) * kTile;
  overlap();
  for (int i = int(threadIdx.x); i < kTile * kSide; i += 256) {
    int line = i / kSide, d = i % kSide, column = i % kTile, e = i / kTile;
    a[d][line] = row0 + line < kSide ? p.a[(row0 + line) * kSide + d] : 0.f;
    b[e][column] = column0 + column < kSide ? p.b[e * kSide + column0 + column] : 0.f;
  }
  __syncthreads();
  int x = int(threadIdx.x) % 16 * 2, y = int(threadIdx.x) / 16 * 2;
  float sum[4] = {};
#pragma unroll 10
  for (int d = 0; d < kSide; ++d) {
    float2 u = *reinterpret_cast<float2*>(&a[d][y]), v = *reinterpret_cast<float2*>(&b[d][x]);
    sum[0] += u.x * v.x, sum[1] += u.x * v.y, sum[2] += u.y * v.x, sum[3] += u.y * v.y;
  }
  for (int i = 0; i < 4; ++i) {
    int row = row0 + y + i / 2, column = column0 + x + i % 2;
    if (row < kSide && column < kSide) p.c[row * kSide + column] = sum[i];
  }
}

/// The root of the sum of c's squares, in one block.
__global__ void __launch_bounds__(1024) norm(const __grid_constant__ Args p) {
  __shared__ float parts[32];
  float sum = 0;
  overlap();
#pragma unroll
  for (int k = 0; k < (kSide * kSide / 4 + 1023) / 1024; ++k) {
    int i = int(threadIdx.x) + k * 1024;
    if (i >= kSide * kSide / 4) break;
    float4 v = reinterpret_cast<const float4*>(p.c)[i];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = parts[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) *p.norm = sqrtf(sum);
}

__global__ void bring(const __grid_constant__ Args p) {
  overlap();
  *p.landing = *p.norm;
  __threadfence_system();
  *static_cast<volatile unsigned*>(p.flag) = p.turn;
}

class Work {
 public:
  explicit Work(bool overlapped) : overlapped_(overlapped) {
    CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    std::vector<float> values(std::size_t(kCount) * kSide * kSide);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(float(i));
    CHECK(cudaMalloc(&a_, values.size() * sizeof(float)));
    CHECK(cudaMemcpy(a_, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&args_.c, kSide * kSide * sizeof(float)));
    CHECK(cudaMalloc(&args_.norm, sizeof(float)));
    CHECK(cudaMallocHost(&args_.landing, 256));
    args_.flag = reinterpret_cast<unsigned*>(args_.landing) + 32;
    *args_.flag = 0;
    args_.b = a_;
  }

  /// The last product's norm.
  float run() {
    for (int i = 0; i < kCount; ++i) {
      args_.a = a_ + std::size_t(i) * kSide * kSide;
      ++args_.turn;
      launch(product, dim3((kSide + kTile - 1) / kTile, (kSide + kTile - 1) / kTile), 256);
      launch(norm, dim3(1), 1024);
      launch(bring, dim3(1), 1);
      std::atomic_ref<unsigned> seen(*args_.flag);
      while (seen.load(std::memory_order_acquire) != args_.turn) continue;
    }
    return *args_.landing;
  }

 private:
  void launch(void (*kernel)(Args), dim3 grid, int block) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = dim3(unsigned(block));
    config.stream = stream_;
    config.attrs = &attribute;
    config.numAttrs = overlapped_ ? 1 : 0;
    CHECK(cudaLaunchKernelEx(&config, kernel, args_));
  }

  bool overlapped_;
  cudaStream_t stream_;
  float* a_ = nullptr;
  Args args_{};
};

}  // namespace

int main() {
  cudaFuncAttributes compiled{};
  CHECK(cudaFuncGetAttributes(&compiled, product));
  for (bool overlapped : {false, true}) {
    if (overlapped && compiled.ptxVersion < 90) continue;  // nothing in the kernels waits
    Work work(overlapped);
    float last = work.run();
    std::vector<double> timings;
    for (int turn = 0; turn < 5; ++turn) {
      auto start = std::chrono::steady_clock::now();
      last = work.run();
      std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
      timings.push_back(ms.count());
    }
    std::sort(timings.begin(), timings.end());
    std::printf(
        "{\"name\": \"1000 products with norm, each to the host by hand%s\", \"value\": %.4g, "
        "\"unit\": \"ms\", \"last\": %.6g}\n",
        overlapped ? ", overlapped" : "", timings[2], last);
  }
}

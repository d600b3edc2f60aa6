// What a launch alone costs the host: the floor of every eager operation. A kernel whose arguments
// are as many bytes as those of an addition, by CUDA's runtime and nothing else: in its plain form,
// and as one that comes while the kernel before it ends (a programmatic dependent launch).
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "hand_written.cuh"

namespace {

struct Arguments {
  float* x;
  char others[488];
};

__global__ void add_one(const __grid_constant__ Arguments arguments) {
  cudaGridDependencySynchronize();
  arguments.x[threadIdx.x] += 1;
}

/// Prints the median of five timings of 500 launches, which no queue is full of.
void time_launches(const char* name, int attributes, float* x) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = static_cast<unsigned>(attributes);
  Arguments arguments{x, {}};
  std::array<double, 6> us{};  // the first warms up
  constexpr int kLaunches = 500;
  for (double& value : us) {
    CHECK(cudaStreamSynchronize(stream));
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) CHECK(cudaLaunchKernelEx(&config, add_one, arguments));
    std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    value = time.count() / kLaunches;
  }
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
  std::sort(us.begin() + 1, us.end());
  std::printf(
      "{\"name\": \"host cost of a launch alone, %s, by hand\", \"value\": %.4g, "
      "\"unit\": \"us\"}\n",
      name, us[3]);
}

}  // namespace

int main() {
  float* x = nullptr;
  CHECK(cudaMalloc(&x, 32 * sizeof(float)));
  CHECK(cudaMemset(x, 0, 32 * sizeof(float)));
  time_launches("plain", 0, x);
  time_launches("while the one before ends", 1, x);
  CHECK(cudaFree(x));
}

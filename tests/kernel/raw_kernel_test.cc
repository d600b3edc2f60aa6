// RawKernel and RawModule: launches on a GPU, and what is refused everywhere.
#include "rensa/kernel/raw_kernel.h"

#include <gtest/gtest.h>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

constexpr const char* kAdd = R"(
extern "C" __global__ void add(const float* x, const float* y, float* out, int n, float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = scale * (x[i] + y[i]);
})";

TEST(RawKernel, RunsOnTheDeviceOfItsArrays) {
  RENSA_NEEDS_GPUS(1);
  RawKernel add(kAdd, "add");
  Array x = xp::arange(1000, float32, gpu()), y = xp::ones({1000}, float32, gpu());
  Array out = xp::zeros({1000}, float32, gpu());
  add({4}, {256}, x, y, out, 1000, 0.5f);
  EXPECT_TRUE(xp::array_equal(out, (x + 1) * 0.5f));
}

TEST(RawKernel, TemplatesAndSharedMemory) {
  RENSA_NEEDS_GPUS(1);
  RawModule module(
      R"(
#include "rensa/core/half.h"
template <class T> __global__ void reversed(T* x, int n) {
  extern __shared__ unsigned char memory[];
  T* copy = reinterpret_cast<T*>(memory);
  for (int i = threadIdx.x; i < n; i += blockDim.x) copy[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = copy[n - 1 - i];
})",
      {.options = {}, .name_expressions = {"reversed<double>", "reversed<rensa::half_t>"}});
  Array x = xp::arange(20000, float64, gpu()), h = xp::arange(100, int64, gpu()).astype(float16);
  module.get_function("reversed<double>").launch({1}, {256}, {x, 20000}, 160000);
  EXPECT_EQ(x[0].item<int>(), 19999);
  module.get_function("reversed<rensa::half_t>").launch({1}, {32}, {h, 100}, 200);
  EXPECT_EQ(h[0].item<int>(), 99);
  EXPECT_THROW(module.get_function("reversed<int>").launch({1}, {32}, {x, 1}, 0), ValueError);
  EXPECT_THROW(module.get_function("reversed<double>").launch({1}, {32}, {x, 1}, 1u << 30),
               ValueError);
}

TEST(RawKernel, WhatTheHostCanKnowIsRefused) {
  RawKernel add(kAdd, "add");
  Array x = xp::ones({4});
  EXPECT_THROW(add({1}, {32}, x, x, x, 4, 1.0f), DeviceError);
  EXPECT_THROW(add({1}, {32}, 4), ValueError);
  EXPECT_THROW(add({0}, {32}, x, x, x, 4, 1.0f), ValueError);
}

#if RENSA_HAS_CUDA
TEST(RawKernel, ItsSourceCompilesWithoutAGpu) {
  EXPECT_GT(cuda::compile_gpu_code({kAdd, "add.cu", {}, {}}, 90).image.size(), 100u);
  auto code = cuda::compile_gpu_code(
      {"template <class T> __global__ void f(T* x) { *x = T(1); }", "f.cu", {}, {"f<float>"}}, 90);
  ASSERT_EQ(code.names.size(), 1u);
  EXPECT_EQ(code.names[0].first, "f<float>");
  try {
    cuda::compile_gpu_code({"__global__ void f() { nonsense(); }", "f.cu", {}, {}}, 90);
    FAIL() << "it compiled";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("f.cu(1)"), std::string::npos) << error.what();
  }
}
#endif

}  // namespace
}  // namespace rensa

// RawKernel and RawModule: launches on a GPU, and what is refused everywhere.
#include "rensa/kernel/raw_kernel.h"

#include <gtest/gtest.h>

#include <complex>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/temporary_folder.h"
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
      {.name_expressions = {"reversed<double>", "reversed<rensa::half_t>"}});
  Array x = xp::arange(20000, float64, gpu()), h = xp::arange(100, int64, gpu()).astype(float16);
  module.get_function("reversed<double>").launch({1}, {256}, {x, 20000}, 160000);
  EXPECT_EQ(x[0].item<int>(), 19999);
  module.get_function("reversed<rensa::half_t>").launch({1}, {32}, {h, 100}, 200);
  EXPECT_EQ(h[0].item<int>(), 99);
  EXPECT_THROW(module.get_function("reversed<int>").launch({1}, {32}, {x, 1}, 0), ValueError);
  EXPECT_THROW(module.get_function("reversed<double>").launch({1}, {32}, {x, 1}, 1u << 30),
               ValueError);
}

/// A struct larger than what a KernelInput has room for by itself.
struct Table {
  double weights[20];
  std::int64_t offset;
};

TEST(RawKernel, NumbersOfAnyKindAndStructsGoByValue) {
  RENSA_NEEDS_GPUS(1);
  RawKernel kernel(R"(
#include "rensa/core/functors.h"
struct Table { double weights[20]; long long offset; };
extern "C" __global__ void mixed(double* out, Table t, rensa::half_t h, rensa::complex_t<float> z,
                                 rensa::complex_t<double> w, bool b) {
  out[0] = t.weights[19] + t.offset;
  out[1] = static_cast<float>(h);
  out[2] = z.re * 10 + z.im;
  out[3] = w.re * 10 + w.im;
  out[4] = b;
})",
                   "mixed");
  Array out = xp::zeros({5}, float64, gpu());
  Table table{};
  table.weights[19] = 0.25;
  table.offset = 40;
  kernel({1}, {1}, out, table, half_t(1.5f), std::complex<float>(2, 3), std::complex<double>(4, 5),
         true);
  EXPECT_EQ(out.to_vector<double>(), (std::vector<double>{40.25, 1.5, 23, 45, 1}));
}

constexpr const char* kGlobals = R"(
extern "C" {
__device__ float scale = 2.0f;
__constant__ int table[4] = {1, 2, 3, 4};
__global__ void apply(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = scale * table[i % 4];
}
__global__ void __launch_bounds__(128) staged(float* out) {
  __shared__ float buffer[64];
  extern __shared__ float more[];
  buffer[threadIdx.x % 64] = more[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = buffer[(threadIdx.x + 1) % 64] + more[threadIdx.x];
}
}
namespace inner { __device__ double hidden = 0.5; })";

TEST(RawModule, VariablesAreArrays) {
  RENSA_NEEDS_GPUS(1);
  RawModule module(kGlobals, {.name_expressions = {"&inner::hidden"}});
  Array scale = module.get_global("scale", float32, gpu());
  Array table = module.get_global("table", int32, gpu());
  EXPECT_EQ(table.to_vector<int>(), (std::vector<int>{1, 2, 3, 4}));
  scale.fill(10);
  table.set(xp::array({5, 6, 7, 8}).astype(int32));
  Array out = xp::zeros({5}, float32, gpu());
  RawKernel apply = module.get_function("apply");
  apply({1}, {32}, out, 5);
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{50, 60, 70, 80, 50}));
  EXPECT_EQ(module.get_global("&inner::hidden", float64, gpu()).item<double>(), 0.5);
  EXPECT_THROW(module.get_global("missing", float32, gpu()), ValueError);
  EXPECT_THROW(module.get_global("scale", float64, gpu()), ValueError);
}

TEST(RawKernel, AttributesAndOccupancy) {
  RENSA_NEEDS_GPUS(1);
  RawKernel staged = RawModule(kGlobals).get_function("staged");
  cuda::KernelAttributes a = staged.attributes();
  EXPECT_EQ(a.max_threads_per_block, 128);
  EXPECT_EQ(a.shared_size_bytes, 256);
  EXPECT_GT(a.num_regs, 0);
  EXPECT_EQ(a.binary_version, cuda::architecture(gpu()));
  staged.set_max_dynamic_shared_size_bytes(64 << 10);
  staged.set_preferred_shared_memory_carveout(50);
  a = staged.attributes(gpu());
  EXPECT_EQ(a.max_dynamic_shared_size_bytes, 64 << 10);
  EXPECT_EQ(a.preferred_shared_memory_carveout, 50);
  EXPECT_GT(staged.max_active_blocks(128), staged.max_active_blocks(128, 64 << 10));
  EXPECT_GE(staged.max_active_blocks(128, 64 << 10), 1);
  EXPECT_THROW(staged.set_max_dynamic_shared_size_bytes(1 << 30), ValueError);
  EXPECT_THROW(staged.set_preferred_shared_memory_carveout(101), ValueError);
}

// A limit that a launch lowered could be one that another thread's launch counts on.
TEST(RawKernel, LaunchesRaiseTheLimitOfSharedMemoryAlone) {
  RENSA_NEEDS_GPUS(1);
  RawKernel staged = RawModule(kGlobals).get_function("staged");
  Array out = xp::zeros({64}, float32, gpu());
  for (unsigned bytes : {64u << 10, 50u << 10, 1u << 10}) {
    staged.launch({1}, {64}, {KernelInput(out)}, bytes);
    EXPECT_EQ(staged.attributes(gpu()).max_dynamic_shared_size_bytes, 64 << 10);
  }
  EXPECT_EQ(out[0].item<float>(), 1.0f);
}

// A barrier over the grid, which hangs unless all blocks run at once.
TEST(RawKernel, CooperativeBlocksRunAtOnce) {
  RENSA_NEEDS_GPUS(1);
  RawKernel kernel(R"(
extern "C" __global__ void neighbours(int* values, unsigned* arrived) {
  values[blockIdx.x] = blockIdx.x;
  __threadfence();
  atomicAdd(arrived, 1u);
  while (atomicAdd(arrived, 0u) < gridDim.x) {}
  __threadfence();
  int other = atomicAdd(&values[(blockIdx.x + 1) % gridDim.x], 0);
  values[gridDim.x + blockIdx.x] = other;
})",
                   "neighbours", {.enable_cooperative_groups = true});
  constexpr int kBlocks = 64;
  Array values = xp::zeros({2 * kBlocks}, int32, gpu()), arrived = xp::zeros({1}, uint32, gpu());
  kernel({kBlocks}, {1}, values, arrived);
  std::vector<int> got = values.to_vector<int>();
  for (int k = 0; k < kBlocks; ++k) {
    EXPECT_EQ(got[static_cast<std::size_t>(kBlocks + k)], (k + 1) % kBlocks);
  }
  // More than can be there at once.
  EXPECT_THROW(kernel({1 << 20}, {1}, values, arrived), CudaError);
}

TEST(RawModule, CodeFromFiles) {
  testing::TemporaryFolder folder;
  EXPECT_THROW(RawModule::from_file(folder / "missing.cubin"), SerializationError);
  EXPECT_THROW(RawModule::from_file(folder.str()), SerializationError);
  testing::write_file(folder / "text.ptx", "no code at all");
  EXPECT_THROW(RawModule::from_file(folder / "text.ptx"), SerializationError);
  std::string own(4096, '\0');  // the beginning of a program of another machine
  std::ifstream("/proc/self/exe", std::ios::binary).read(own.data(), std::ssize(own));
  testing::write_file(folder / "own.cubin", own);
  EXPECT_THROW(RawModule::from_file(folder / "own.cubin"), SerializationError);
  constexpr const char* kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry set7(.param .u64 out) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";
  testing::write_file(folder / "set7.ptx", kPtx);
  RawModule ptx = RawModule::from_file(folder / "set7.ptx");
  EXPECT_THROW(RawModule::from_file(folder / "set7.ptx", {.options = {"-O3"}}), ValueError);
  Array host = xp::zeros({1}, int32);
  EXPECT_THROW(ptx.get_function("set7")({1}, {1}, host), DeviceError);
  RENSA_NEEDS_GPUS(1);
  Array out = xp::zeros({1}, int32, gpu());
  ptx.get_function("set7")({1}, {1}, out);
  EXPECT_EQ(out.item<int>(), 7);
  testing::write_file(folder / "wrong.ptx", std::string(kPtx) + "nonsense here");
  RawKernel wrong = RawModule::from_file(folder / "wrong.ptx").get_function("set7");
  EXPECT_THROW(wrong({1}, {1}, out), CudaError);
  auto code = cuda::compile_gpu_code({kAdd, "add.cu", {}, {}}, cuda::architecture(gpu()));
  testing::write_file(folder / "add.cubin", code.image);
  RawKernel add = RawModule::from_file(folder / "add.cubin").get_function("add");
  Array x = xp::ones({4}, float32, gpu()), y = xp::zeros({4}, float32, gpu());
  add({1}, {32}, x, x, y, 4, 2.0f);
  EXPECT_TRUE(xp::array_equal(y, xp::full({4}, 4.f, float32, gpu())));
  EXPECT_THROW(RawModule::from_file(folder / "add.cubin").get_function("no")({1}, {1}, out),
               ValueError);
}

TEST(RawModule, WithoutAGpuItSaysSo) {
  if (num_gpus() > 0) GTEST_SKIP() << "there is one";
  RawModule module(kGlobals);
  EXPECT_THROW(module.get_global("scale", float32), DeviceError);
  EXPECT_THROW(module.get_global("scale", float32, cpu()), DeviceError);
  EXPECT_THROW(module.get_function("staged").attributes(), DeviceError);
  EXPECT_THROW(module.get_function("staged").max_active_blocks(128), DeviceError);
  EXPECT_THROW(module.get_function("staged").set_max_dynamic_shared_size_bytes(1), DeviceError);
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
  auto globals = cuda::compile_gpu_code({kGlobals, "g.cu", {}, {"&inner::hidden"}}, 90);
  ASSERT_EQ(globals.names.size(), 1u);
  EXPECT_NE(globals.names[0].second.find("hidden"), std::string::npos);
  testing::TemporaryFolder folder;
  testing::write_file(folder / "g.cubin", globals.image);
  EXPECT_NO_THROW(RawModule::from_file(folder / "g.cubin"));
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

// The kernels of cuda_kernels.h: none of them is in the way of a float product of ordinary
// layout.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/operations/matmul/cuda_kernels.h"

namespace rensa::cuda {

namespace {

constexpr int kTile = 16;

/// Wrap-around is the same whatever width it is carried in; unsigned, because only that may wrap.
template <class T>
using Accumulator = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;

template <class T>
__global__ void __launch_bounds__(kTile* kTile) integer_matmul_kernel(IntegerMatmulArgs p) {
  wait_for_previous();
  using A = Accumulator<T>;
  __shared__ A a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];
  int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  std::int64_t i0 = std::int64_t{blockIdx.y} * kTile, j0 = std::int64_t{blockIdx.x} * kTile;
  for (std::int64_t batch = blockIdx.z; batch < p.batch; batch += gridDim.z) {
    const T* a = static_cast<const T*>(p.a) + batch * p.a_batch;
    const T* b = static_cast<const T*>(p.b) + batch * p.b_batch;
    A sum = 0;
    for (int k0 = 0; k0 < p.k; k0 += kTile) {
      bool a_inside = i0 + y < p.m && k0 + x < p.k, b_inside = k0 + y < p.k && j0 + x < p.n;
      a_tile[y][x] = a_inside ? static_cast<A>(a[(i0 + y) * p.a_row + (k0 + x) * p.a_k]) : A(0);
      b_tile[y][x] = b_inside ? static_cast<A>(b[(k0 + y) * p.b_k + (j0 + x) * p.b_column]) : A(0);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kTile; ++k) {
        A product = a_tile[y][k] * b_tile[k][x];
        if constexpr (std::is_same_v<T, bool>) sum |= product;
        else sum += product;
      }
      __syncthreads();
    }
    if (i0 + y < p.m && j0 + x < p.n) {
      static_cast<T*>(p.c)[batch * p.c_batch + (i0 + y) * p.c_row + j0 + x] = static_cast<T>(sum);
    }
  }
}

template <class T> __global__ void epilogue_kernel(EpilogueArgs p) {
  wait_for_previous();
  using V = ComputeOf<T>;
  std::int64_t size = p.batch * p.m * p.n, step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    std::int64_t j = i % p.n, row = i / p.n;
    T* c = static_cast<T*>(p.c) + row / p.m * p.c_batch + row % p.m * p.c_row + j;
    V value = convert<V>(*c);
    if (p.bias) {
      V bias = convert<V>(static_cast<const T*>(p.bias)[j * p.bias_stride]);
      if constexpr (std::is_same_v<T, bool>) value |= bias;
      // What would be stored without the activation is what it sees.
      else value = convert<V>(convert<T>(value + bias));
    }
    using operations::Activation;
    if constexpr (!m::is_complex<V>::value) {
      if (p.activation == Activation::relu) value = value <= V(0) ? V(0) : value;
    }
    if constexpr (!std::is_integral_v<V>) {
      if (p.activation == Activation::tanh) value = m::tanh(value);
    }
    if constexpr (!m::is_complex<V>::value) {
      const T* gate = static_cast<const T*>(p.gate);
      if (gate && !(convert<V>(gate[c - static_cast<T*>(p.c)]) > V(0))) value = V(0);
    }
    *c = convert<T>(value);
  }
}

template <class T> __global__ void fill_kernel(T* data, std::int64_t size, unsigned seed) {
  wait_for_previous();
  std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    // Any good mix of the bits will do.
    unsigned h = static_cast<unsigned>(i) * 0x9e3779b9u + seed;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    data[i] = convert<T>(static_cast<float>(h >> 8) * 0x1p-23f - 1.0f);
  }
}

__global__ void compare_kernel(const unsigned short* a, const unsigned short* b, std::int64_t count,
                               unsigned* differs) {
  wait_for_previous();
  std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  bool found = false;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    found = found || a[i] != b[i];
  }
  if (found) *differs = 1;
}

unsigned grid_for(std::int64_t size) {
  constexpr std::int64_t kMaxBlocks = 2048;
  return static_cast<unsigned>(std::min(ceil_div(size, kBlock), kMaxBlocks));
}

}  // namespace

void launch_integer_matmul(Dtype dtype, const IntegerMatmulArgs& args,
                           const LaunchContext& context) {
  constexpr std::int64_t kMaxGrid = 65535;
  if (ceil_div(args.m, kTile) > kMaxGrid) {
    throw NotImplementedError("matmul: integer products have at most 1048560 rows on a GPU");
  }
  dim3 grid(static_cast<unsigned>(ceil_div(args.n, kTile)),
            static_cast<unsigned>(ceil_div(args.m, kTile)),
            static_cast<unsigned>(std::min(args.batch, kMaxGrid)));
  auto start = [&](auto zero) {
    launch_kernel("matmul", context, integer_matmul_kernel<decltype(zero)>, grid, kTile * kTile,
                  args);
  };
  switch (dtype) {
    case Dtype::bool_: return start(bool{});
    case Dtype::int8: return start(std::int8_t{});
    case Dtype::int16: return start(std::int16_t{});
    case Dtype::int32: return start(std::int32_t{});
    case Dtype::int64: return start(std::int64_t{});
    case Dtype::uint8: return start(std::uint8_t{});
    case Dtype::uint16: return start(std::uint16_t{});
    case Dtype::uint32: return start(std::uint32_t{});
    default: return start(std::uint64_t{});
  }
}

void launch_matmul_epilogue(Dtype dtype, const EpilogueArgs& args, const LaunchContext& context) {
  unsigned blocks = grid_for(args.batch * args.m * args.n);
  switch (dtype) {
#define RENSA_CASE(d, T) \
  case Dtype::d: return launch_kernel("matmul", context, epilogue_kernel<T>, blocks, kBlock, args);
    RENSA_STORAGE_TYPES(RENSA_CASE)
#undef RENSA_CASE
  }
}

void launch_fill_pattern(Dtype dtype, void* data, std::int64_t size, unsigned seed,
                         cudaStream_t stream) {
  if (dtype_kind(dtype) == 'c') {  // as pairs of real numbers
    size *= 2;
    dtype = dtype == Dtype::complex64 ? Dtype::float32 : Dtype::float64;
  }
  auto start = [&](auto zero) {
    using T = decltype(zero);
    fill_kernel<<<grid_for(size), kBlock, 0, stream>>>(static_cast<T*>(data), size, seed);
    RENSA_CUDA_CHECK("matmul", cudaGetLastError());
  };
  switch (dtype) {
    case Dtype::float16: return start(half_t{});
    case Dtype::bfloat16: return start(bfloat16_t{});
    case Dtype::float32: return start(float{});
    default: return start(double{});
  }
}

bool is_same_memory(const char* operation, const void* a, const void* b, std::int64_t nbytes,
                    unsigned* differs, cudaStream_t stream) {
  std::int64_t count = nbytes / 2;
  unsigned answer = 0;
  RENSA_CUDA_CHECK(operation, cudaMemsetAsync(differs, 0, sizeof(answer), stream));
  compare_kernel<<<grid_for(count), kBlock, 0, stream>>>(
      static_cast<const unsigned short*>(a), static_cast<const unsigned short*>(b), count, differs);
  RENSA_CUDA_CHECK(operation, cudaGetLastError());
  RENSA_CUDA_CHECK(operation,
                   cudaMemcpyAsync(&answer, differs, sizeof(answer), cudaMemcpyDefault, stream));
  count_sync(operation);
  RENSA_CUDA_CHECK(operation, cudaStreamSynchronize(stream));
  return answer == 0;
}

}  // namespace rensa::cuda

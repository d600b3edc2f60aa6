// The stable order of keys on a GPU: CUB's radix sort of keys with their positions.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/operations.h"

namespace rensa {

namespace cuda {

namespace {

struct PrepareArgs {
  const char* keys;
  Dtype dtype;
  std::int64_t stride, size;
  unsigned long long* wide_keys;
  std::int64_t* positions;
};

// Widens the keys, so that one sort serves all, and numbers them.
__global__ void __launch_bounds__(kBlock) prepare_keys(const __grid_constant__ PrepareArgs args) {
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (i >= args.size) return;
  args.wide_keys[i] =
      static_cast<unsigned long long>(load_integer(args.keys + i * args.stride, args.dtype));
  args.positions[i] = i;
}

// The workspace: keys before and after, positions before, CUB's own.
std::size_t arrays_bytes(std::int64_t n) {
  return 3 * static_cast<std::size_t>(ceil_div(n, 32) * 32) * sizeof(std::uint64_t);
}

std::size_t sort_bytes(std::int64_t n) {
  std::size_t bytes = 0;
  const unsigned long long* keys = nullptr;
  const std::int64_t* positions = nullptr;
  RENSA_CUDA_CHECK("permutation", cub::DeviceRadixSort::SortPairs(
                                      nullptr, bytes, keys, const_cast<unsigned long long*>(keys),
                                      positions, const_cast<std::int64_t*>(positions), n));
  return bytes;
}

}  // namespace

}  // namespace cuda

std::size_t ArgsortKeys::workspace_bytes() const {
  std::int64_t n = keys.view.size();
  if (n == 0) return 0;
  cuda::runtime::set_device(keys.view.device);
  return cuda::arrays_bytes(n) + cuda::sort_bytes(n);
}

void ArgsortKeys::run_cuda(const cuda::LaunchContext& context) {
  std::int64_t n = keys.view.size();
  if (n == 0) return;
  std::size_t array = cuda::arrays_bytes(n) / 3;
  char* workspace = static_cast<char*>(context.workspace);
  auto* before = reinterpret_cast<unsigned long long*>(workspace);
  auto* after = reinterpret_cast<unsigned long long*>(workspace + array);
  auto* positions = reinterpret_cast<std::int64_t*>(workspace + 2 * array);
  cuda::PrepareArgs args = {keys.view.data, keys.view.dtype, keys.view.strides[0], n,
                            before,         positions};
  cuda::launch_kernel(name(), context, cuda::prepare_keys, cuda::ceil_div(n, cuda::kBlock),
                      cuda::kBlock, args);
  std::size_t bytes = context.workspace_bytes - 3 * array;
  RENSA_CUDA_CHECK(name(),
                   cub::DeviceRadixSort::SortPairs(workspace + 3 * array, bytes, before, after,
                                                   positions, order.view.as<std::int64_t>(), n, 0,
                                                   static_cast<int>(8 * itemsize(keys.view.dtype)),
                                                   static_cast<cudaStream_t>(context.handle)));
}

}  // namespace rensa

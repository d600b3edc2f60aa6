// The positions of an array's non-zero elements on a GPU: counted by tile, the counts summed up by
// CUB's scan, then every tile lists its own in shared memory and writes them side by side.
#include <cub/device/device_scan.cuh>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/scan_functors.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/operations/nonzero/nonzero.h"

namespace rensa::cuda {

namespace {

using operations::kTrueTile;

constexpr int kPerThread = kTrueTile / kBlock;
static_assert(kPerThread == 16);

struct TrueArgs {
  const char* in;
  std::int64_t size;
  int ndim = 0;
  bool contiguous, small;  // small: FastDiv counts the elements
  bool vector;             // elements move 16 bytes at a time
  int log2_size;
  unsigned long long magnitude;  // the bits of a word that are not a sign
  FastDiv fast_extent[kMaxNdim];
  std::int64_t extent[kMaxNdim] = {}, stride[kMaxNdim] = {};
  std::int64_t* offsets;
  char* out;
  std::int64_t out_row, out_column;  // strides
  int columns = 0;
  const char* from;  // whose elements are wanted, not the positions
  int log2_from;

#if defined(__CUDACC__)
  /// position / extent[axis], and in `rest` what is left.
  __device__ __forceinline__ std::int64_t split(std::int64_t position, int axis,
                                                std::int64_t* rest) const {
    std::int64_t quotient =
        small ? fast_extent[axis].divide(static_cast<unsigned>(position)) : position / extent[axis];
    *rest = position - quotient * extent[axis];
    return quotient;
  }
  __device__ __forceinline__ const char* address(std::int64_t position) const {
    if (contiguous) return in + (position << log2_size);
    std::int64_t offset = 0, coordinate;
    for (int axis = ndim - 1; axis > 0; --axis) {
      position = split(position, axis, &coordinate);
      offset += coordinate * stride[axis];
    }
    return in + offset + position * stride[0];
  }
  /// out[to] = from[position]
  __device__ __forceinline__ void move(std::int64_t position, std::int64_t to) const {
    const char* source = from + (position << log2_from);
    char* target = out + (to << log2_from);
    switch (log2_from) {
      case 0: *target = *source; return;
      case 1:
        *reinterpret_cast<unsigned short*>(target) =
            *reinterpret_cast<const unsigned short*>(source);
        return;
      case 2:
        *reinterpret_cast<unsigned*>(target) = *reinterpret_cast<const unsigned*>(source);
        return;
      default:  // 8 bytes, or 16 that are aligned to 8
        for (int word = 0; word < 1 << (log2_from - 3); ++word) {
          reinterpret_cast<unsigned long long*>(target)[word] =
              reinterpret_cast<const unsigned long long*>(source)[word];
        }
    }
  }
  __device__ __forceinline__ bool is_true(const char* p) const {
    switch (log2_size) {
      case 0: return (*reinterpret_cast<const unsigned char*>(p) & magnitude) != 0;
      case 1: return (*reinterpret_cast<const unsigned short*>(p) & magnitude) != 0;
      case 2: return (*reinterpret_cast<const unsigned*>(p) & magnitude) != 0;
      case 3: return (*reinterpret_cast<const unsigned long long*>(p) & magnitude) != 0;
      default: {
        const auto* words = reinterpret_cast<const unsigned long long*>(p);
        return ((words[0] | words[1]) & magnitude) != 0;
      }
    }
  }
  /// Of kPerThread elements that lie side by side, at an aligned address.
  template <class T> __device__ __forceinline__ unsigned vector_truths(std::int64_t begin) const {
    constexpr int kWidth = 16 / sizeof(T);
    auto* packs = reinterpret_cast<const Pack<T, kWidth>*>(in + begin * sizeof(T));
    unsigned bits = 0;
#pragma unroll
    for (int e = 0; e < kPerThread; e += kWidth) {
      Pack<T, kWidth> pack = packs[e / kWidth];
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        bits |= ((pack.value[j] & static_cast<T>(magnitude)) != 0 ? 1u : 0u) << (e + j);
      }
    }
    return bits;
  }
  /// Bit e for element `begin` + e, of this thread's kPerThread elements.
  __device__ __forceinline__ unsigned truths(std::int64_t begin) const {
    unsigned bits = 0;
    if (vector && begin + kPerThread <= size) {
      switch (log2_size) {
        case 0: return vector_truths<unsigned char>(begin);
        case 1: return vector_truths<unsigned short>(begin);
        case 2: return vector_truths<unsigned>(begin);
        default: return vector_truths<unsigned long long>(begin);
      }
    }
    for (int e = 0; e < kPerThread && begin + e < size; ++e) {
      bits |= (is_true(address(begin + e)) ? 1u : 0u) << e;
    }
    return bits;
  }
#endif
};

__device__ __forceinline__ std::int64_t thread_begin() {
  return blockIdx.x * static_cast<std::int64_t>(kTrueTile) + threadIdx.x * kPerThread;
}

// What the threads before this one add up to, and in `total` all of the block.
__device__ __forceinline__ unsigned sum_before(unsigned value, unsigned* total) {
  __shared__ unsigned warps[kBlock / 32];
  unsigned sum = scan_lanes<RunningSum>(value), before;
  *total = join_warps<RunningSum, kBlock>(warps, sum, 31, 0u, &before);
  return before + sum - value;
}

__global__ void __launch_bounds__(kBlock) count_true(const __grid_constant__ TrueArgs args) {
  wait_for_previous();
  unsigned total;
  sum_before(static_cast<unsigned>(__popc(args.truths(thread_begin()))), &total);
  if (threadIdx.x != 0) return;
  args.offsets[blockIdx.x] = total;
  if (blockIdx.x == 0) args.offsets[gridDim.x] = 0;
}

__global__ void __launch_bounds__(kBlock) find_true(const __grid_constant__ TrueArgs args) {
  wait_for_previous();
  __shared__ unsigned short found[kTrueTile];  // within the tile
  unsigned bits = args.truths(thread_begin()), total;
  unsigned at = sum_before(static_cast<unsigned>(__popc(bits)), &total);
  for (; bits != 0; bits &= bits - 1) {
    found[at++] = static_cast<unsigned short>(threadIdx.x * kPerThread + __ffs(bits) - 1);
  }
  __syncthreads();
  std::int64_t tile = blockIdx.x * static_cast<std::int64_t>(kTrueTile);
  std::int64_t first = args.offsets[blockIdx.x];
  for (unsigned k = threadIdx.x; k < total; k += kBlock) {
    std::int64_t position = tile + found[k], coordinate;
    if (args.from) {
      args.move(position, first + k);
      continue;
    }
    char* row = args.out + (first + k) * args.out_row;
    for (int axis = args.columns - 1; axis > 0; --axis) {
      position = args.split(position, axis, &coordinate);
      *reinterpret_cast<std::int64_t*>(row + axis * args.out_column) = coordinate;
    }
    if (args.columns > 0) *reinterpret_cast<std::int64_t*>(row) = position;
  }
}

unsigned long long magnitude_bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
    case Dtype::bfloat16: return 0x7fff;
    case Dtype::float32: return 0x7fffffff;
    case Dtype::complex64: return 0x7fffffff7fffffff;
    case Dtype::float64:
    case Dtype::complex128: return 0x7fffffffffffffff;
    default: return ~0ull;
  }
}

int log2_itemsize(Dtype dtype) {
  int result = 0;
  while ((std::int64_t{1} << result) < itemsize(dtype)) ++result;
  return result;
}

TrueArgs true_args(const ArrayView& in, const Operand& offsets) {
  TrueArgs args = {};
  args.in = in.data;
  args.size = in.size();
  args.ndim = in.ndim();
  args.contiguous = in.is_c_contiguous() || in.ndim() == 0;
  args.small = args.size <= kMaxCount;
  for (int axis = 0; axis < in.ndim(); ++axis) {
    args.extent[axis] = in.shape[axis];
    args.stride[axis] = in.strides[axis];
    if (args.small) args.fast_extent[axis] = FastDiv(in.shape[axis]);
  }
  args.log2_size = log2_itemsize(in.dtype);
  args.vector = args.contiguous && args.log2_size <= 3 && is_aligned(args.in, 16);
  args.magnitude = magnitude_bits(in.dtype);
  args.offsets = offsets.view.as<std::int64_t>();
  return args;
}

std::size_t scan_bytes(std::int64_t n) {
  std::size_t bytes = 0;
  std::int64_t* offsets = nullptr;
  RENSA_CUDA_CHECK("nonzero", cub::DeviceScan::ExclusiveSum(nullptr, bytes, offsets, offsets, n));
  return bytes;
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t CountTrue::workspace_bytes() const {
  cuda::runtime::set_device(in.view.device);
  return cuda::scan_bytes(offsets.view.size());
}

void CountTrue::run_cuda(const cuda::LaunchContext& context) {
  std::int64_t n = offsets.view.size();
  cuda::TrueArgs args = cuda::true_args(in.view, offsets);
  cuda::launch_kernel(name(), context, cuda::count_true, n - 1, cuda::kBlock, args);
  std::size_t bytes = context.workspace_bytes;
  RENSA_CUDA_CHECK(
      name(), cub::DeviceScan::ExclusiveSum(context.workspace, bytes, args.offsets, args.offsets, n,
                                            static_cast<cudaStream_t>(context.handle)));
}

void FindTrue::run_cuda(const cuda::LaunchContext& context) {
  cuda::TrueArgs args = cuda::true_args(in.view, offsets);
  args.out = out.view.data;
  if (from.present()) {
    args.from = from.view.data;
    args.log2_from = cuda::log2_itemsize(from.view.dtype);
  } else {
    args.out_row = out.view.strides[0];
    args.out_column = out.view.strides[1];
    args.columns = static_cast<int>(out.view.shape[1]);
  }
  cuda::launch_kernel(name(), context, cuda::find_true, offsets.view.size() - 1, cuda::kBlock,
                      args);
}

}  // namespace rensa::operations

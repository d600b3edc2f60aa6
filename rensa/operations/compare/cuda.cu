// Comparisons with a tolerance on a GPU.
#include "rensa/operations/compare/compare.h"
#include "rensa/operations/reduce/cuda_pairs.cuh"

namespace rensa::cuda {

namespace {

// --- allclose ---

struct AllCloseArgs : ReducePairArgs {
  Closeness closeness;
};
using AllCloseKernel = void (*)(AllCloseArgs);

template <class T> struct CloseLoader : PairLoader<T, AllCloseArgs> {
  using Value = unsigned;
  static __device__ __forceinline__ Value
  value(const AllCloseArgs& args, const typename PairLoader<T, AllCloseArgs>::Data& data, int j) {
    return args.closeness(convert<double>(data.a.value[j]), convert<double>(data.b.value[j]));
  }
};

/// Whether 16 bytes are the same; what is not there is the same.
struct BitsLoader : PairLoader<unsigned char, AllCloseArgs, 1> {
  using Value = unsigned;
  static __device__ __forceinline__ Value value(const AllCloseArgs&, const Data& data, int) {
    unsigned long long a[2], b[2];
    memcpy(a, &data.a, sizeof(a));
    memcpy(b, &data.b, sizeof(b));
    return (a[0] == b[0]) & (a[1] == b[1]);
  }
};

struct AllReducer {
  using Value = unsigned;
  using Acc = unsigned;
  static constexpr bool kBlockwise = false;
  static __device__ __forceinline__ Acc identity() { return 1; }
  static __device__ __forceinline__ Acc take(Acc acc, Value value, std::int64_t) {
    return acc & value;
  }
  static __device__ __forceinline__ Acc combine(Acc a, Acc b) { return a & b; }
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t) {
    store_any<long long>(p, dtype, acc);
  }
};

AllCloseKernel close_kernel(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return reduce_rows<AllReducer, CloseLoader<half_t>>;
    case Dtype::bfloat16: return reduce_rows<AllReducer, CloseLoader<bfloat16_t>>;
    case Dtype::float32: return reduce_rows<AllReducer, CloseLoader<float>>;
    default: return reduce_rows<AllReducer, CloseLoader<double>>;
  }
}

// --- isclose ---

struct CloseArgs {
  const char *a, *b;
  char* out;
  std::int64_t size;
  ElementType a_type, b_type;
  Indexer<3> indexer;  // of the kernel for any dtype and stride; 0 is the output
  Closeness closeness;
};

constexpr int kCloseUnroll = 2;

template <class T>
__global__ void __launch_bounds__(kBlock) close_vectors(const __grid_constant__ CloseArgs args) {
  wait_for_previous();
  constexpr int W = 16 / sizeof(T), U = kCloseUnroll;
  std::int64_t begin = blockIdx.x * static_cast<std::int64_t>(kBlock * U) + threadIdx.x;
  Pack<T, W> a[U], b[U];
  if ((blockIdx.x + std::int64_t{1}) * (kBlock * U * W) <= args.size) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      a[u] = reinterpret_cast<const Pack<T, W>*>(args.a)[begin + u * kBlock];
      b[u] = reinterpret_cast<const Pack<T, W>*>(args.b)[begin + u * kBlock];
    }
  } else {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      std::int64_t at = (begin + u * kBlock) * W;
      a[u] = load_pack<T, W>(reinterpret_cast<const T*>(args.a) + at, args.size - at, true, T{});
      b[u] = load_pack<T, W>(reinterpret_cast<const T*>(args.b) + at, args.size - at, true, T{});
    }
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    std::int64_t at = (begin + u * kBlock) * W;
    Pack<bool, W> result;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      result.value[j] =
          args.closeness(convert<double>(a[u].value[j]), convert<double>(b[u].value[j]));
    }
    store_pack<bool, W>(reinterpret_cast<bool*>(args.out) + at, result, args.size - at, true);
  }
}

__global__ void __launch_bounds__(kBlock) close_elements(const __grid_constant__ CloseArgs args) {
  wait_for_previous();
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.size) return;
  std::int64_t offset[3];
  args.indexer.offsets(index, offset);
  double a = load_any<double>(args.a + offset[1], args.a_type);
  double b = load_any<double>(args.b + offset[2], args.b_type);
  *reinterpret_cast<bool*>(args.out + offset[0]) = args.closeness(a, b);
}

using CloseKernel = void (*)(CloseArgs);

// The kernel over vectors, or null.
CloseKernel close_vectors_of(const ArrayView& a, const ArrayView& b, const ArrayView& out) {
  bool straight = a.is_c_contiguous() && b.is_c_contiguous() && out.is_c_contiguous() &&
                  a.dtype == b.dtype && is_aligned(a.data, 16) && is_aligned(b.data, 16) &&
                  is_aligned(out.data, 16);
  if (!straight) return nullptr;
  switch (a.dtype) {
    case Dtype::float16: return close_vectors<half_t>;
    case Dtype::bfloat16: return close_vectors<bfloat16_t>;
    case Dtype::float32: return close_vectors<float>;
    case Dtype::float64: return close_vectors<double>;
    default: return nullptr;
  }
}

void run_close(const operations::IsClose& op, const LaunchContext& context, ArrayView a,
               ArrayView b, ArrayView out) {
  CloseArgs args = {};
  args.a = a.data;
  args.b = b.data;
  args.out = out.data;
  args.size = out.size();
  args.closeness = op.closeness;
  if (CloseKernel kernel = close_vectors_of(a, b, out)) {
    std::int64_t each = kBlock * kCloseUnroll * (16 / itemsize(a.dtype));
    return launch_kernel(op.name(), context, kernel, ceil_div(args.size, each), kBlock, args);
  }
  ArrayView* views[3] = {&out, &a, &b};
  normalize_axes(views, 3);
  keep_an_axis(views, 3);
  if (args.size > kMaxCount) {  // two halves along the longest axis
    int axis = 0;
    for (int i = 1; i < out.ndim(); ++i) axis = out.shape[i] > out.shape[axis] ? i : axis;
    std::int64_t half = out.shape[axis] / 2;
    ArrayView parts[3] = {a, b, out};
    for (ArrayView& part : parts) part.shape[axis] = half;
    run_close(op, context, parts[0], parts[1], parts[2]);
    for (ArrayView* view : views) {
      view->shape[axis] -= half;
      view->data += half * view->strides[axis];
    }
    return run_close(op, context, a, b, out);
  }
  args.a_type = ElementType(a.dtype, ComputeType::f64, false);
  args.b_type = ElementType(b.dtype, ComputeType::f64, false);
  for (int axis = 0; axis < out.ndim(); ++axis) {
    args.indexer.push_back(out.shape[axis], {out.strides[axis], a.strides[axis], b.strides[axis]});
  }
  launch_kernel(op.name(), context, close_elements, ceil_div(args.size, kBlock), kBlock, args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void IsClose::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() > 0) cuda::run_close(*this, context, a.view, b.view, out.view);
}

std::size_t AllClose::workspace_bytes() const {
  return cuda::flat_workspace_bytes(a.view.nbytes());
}

void AllClose::run_cuda(const cuda::LaunchContext& context) {
  std::int64_t size = bits ? 1 : itemsize(a.view.dtype);
  cuda::AllCloseKernel kernel = bits ? cuda::reduce_rows<cuda::AllReducer, cuda::BitsLoader>
                                     : cuda::close_kernel(a.view.dtype);
  cuda::AllCloseArgs args = {};
  args.closeness = closeness;
  cuda::launch_pairs(name(), context, kernel, a.view.data, b.view.data, a.view.nbytes() / size,
                     size, out.view.data, out.view.dtype, args);
}

}  // namespace rensa::operations

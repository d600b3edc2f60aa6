// Conversions of long contiguous arrays between dtypes: four elements at a time are read as what
// they are and written as what they become.
#include "rensa/backend/cuda/convert.h"

#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

namespace {

constexpr int kFour = 4, kUnroll = 4;

// Of four elements; wide ones move in pieces.
template <class T> struct alignas(sizeof(T) < 4 ? sizeof(T) * kFour : 16) Four { T value[kFour]; };
// A bool may be any byte.
template <class T> using Loaded = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;

struct ConvertArgs {
  const char* in;
  char* out;
  ElementType in_type;
  Dtype out_dtype;
  int in_size, out_size;  // bytes of an element
  std::int64_t size;
};
using ConvertKernel = void (*)(ConvertArgs);

template <class T, class V>
__device__ __forceinline__ void load_fours(const char* in, std::int64_t first,
                                           V (&x)[kUnroll][kFour]) {
  Four<Loaded<T>> four[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    four[u] = reinterpret_cast<const Four<Loaded<T>>*>(in)[first + u * kBlock];
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int j = 0; j < kFour; ++j) {
      if constexpr (std::is_same_v<T, bool>) x[u][j] = four[u].value[j] != 0 ? 1 : 0;
      else x[u][j] = convert<V>(four[u].value[j]);
    }
  }
}

template <class T, class V>
__device__ __forceinline__ void store_fours(char* out, std::int64_t first,
                                            const V (&x)[kUnroll][kFour]) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    Four<T> four;
#pragma unroll
    for (int j = 0; j < kFour; ++j) four.value[j] = convert<T>(x[u][j]);
    reinterpret_cast<Four<T>*>(out)[first + u * kBlock] = four;
  }
}

// V is what elements of the input's dtype are computed in.
template <class V>
__global__ void __launch_bounds__(kBlock) convert_fours(const __grid_constant__ ConvertArgs args) {
  wait_for_previous();
  constexpr std::int64_t kEach = kBlock * kUnroll * kFour;
  std::int64_t begin = blockIdx.x * kEach;
  if (begin + kEach > args.size) {  // the last block
    for (std::int64_t i = begin + threadIdx.x; i < args.size; i += kBlock) {
      V value = load_any<V>(args.in + i * args.in_size, args.in_type);
      store_any<V>(args.out + i * args.out_size, args.out_dtype, value);
    }
    return;
  }
  V x[kUnroll][kFour];
  std::int64_t first = begin / kFour + threadIdx.x;
  switch (args.in_type.dtype) {
#define RENSA_CASE(d, T)                                                                \
  case Dtype::d:                                                                        \
    if constexpr (std::is_same_v<ComputeOf<T>, V>) load_fours<T, V>(args.in, first, x); \
    break;
    RENSA_STORAGE_TYPES(RENSA_CASE)
#undef RENSA_CASE
  }
  switch (args.out_dtype) {
#define RENSA_CASE(d, T) \
  case Dtype::d: store_fours<T, V>(args.out, first, x); break;
    RENSA_STORAGE_TYPES(RENSA_CASE)
#undef RENSA_CASE
  }
}

ConvertKernel convert_kernel(ComputeType type) {
  switch (type) {
    case ComputeType::i64: return convert_fours<long long>;
    case ComputeType::u64: return convert_fours<unsigned long long>;
    case ComputeType::f32: return convert_fours<float>;
    case ComputeType::f64: return convert_fours<double>;
    default: return nullptr;
  }
}

bool fours_are_aligned(const ArrayView& view) {
  return is_aligned(view.data, std::min<std::int64_t>(16, itemsize(view.dtype) * kFour));
}

}  // namespace

bool convert_elements(const char* operation, const LaunchContext& context, ArrayView in,
                      ArrayView out) {
  constexpr std::int64_t kLong = std::int64_t{kBlock} * kUnroll * kFour * kMultiprocessors;
  ConvertKernel kernel = convert_kernel(compute_type(in.dtype));
  if (!kernel || out.size() < kLong) return false;
  ArrayView* views[2] = {&out, &in};
  normalize_axes(views, 2);
  keep_an_axis(views, 2);
  bool contiguous = out.ndim() == 1 && out.strides[0] == itemsize(out.dtype) &&
                    in.strides[0] == itemsize(in.dtype);
  if (!contiguous || !fours_are_aligned(in) || !fours_are_aligned(out)) return false;
  ConvertArgs args = {};
  args.in = in.data;
  args.out = out.data;
  args.in_type = ElementType(in.dtype, compute_type(in.dtype), in.dtype == bool_);
  args.out_dtype = out.dtype;
  args.in_size = static_cast<int>(itemsize(in.dtype));
  args.out_size = static_cast<int>(itemsize(out.dtype));
  args.size = out.size();
  launch_kernel(operation, context, kernel, ceil_div(args.size, kBlock * kUnroll * kFour), kBlock,
                args);
  return true;
}

}  // namespace rensa::cuda

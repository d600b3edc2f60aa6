// Arithmetic on arrays of different floating dtypes on a GPU: one kernel, which is told the row and
// the dtypes in its arguments. All threads take the same way, and none waits between its loads.
#include "rensa/operations/elementwise/cuda_mixed.h"

#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/packed_conversion.cuh"

#include "rensa/core/begin_functors.h"
namespace rensa::op {
#include "rensa/core/ufuncs/arithmetic.def"
#include "rensa/core/ufuncs/extrema.def"
}  // namespace rensa::op
#include "rensa/core/end_functors.h"

namespace rensa::ufunc {
#define RENSA_UFUNC(name, inputs, rule, expression) extern const UfuncInfo name;
#include "rensa/core/ufuncs/arithmetic.def"
#include "rensa/core/ufuncs/extrema.def"
#undef RENSA_UFUNC
}  // namespace rensa::ufunc

namespace rensa::cuda {

namespace {

// Without floor_divide, remainder and fmod, which are long.
constexpr bool is_cheap(int inputs, DtypeRule rule) {
  return inputs == 2 && rule != DtypeRule::real;
}

namespace number {
enum : int {
#define RENSA_UFUNC(name, inputs, rule, expression) name,
#include "rensa/core/ufuncs/arithmetic.def"
#include "rensa/core/ufuncs/extrema.def"
#undef RENSA_UFUNC
  none
};
}  // namespace number

int number_of(Ufunc f) {
#define RENSA_UFUNC(name, inputs, rule, expression) \
  if (is_cheap(inputs, DtypeRule::rule) && f == ufunc::name) return number::name;
#include "rensa/core/ufuncs/arithmetic.def"
#include "rensa/core/ufuncs/extrema.def"
#undef RENSA_UFUNC
  return number::none;
}

constexpr int kMixedBlock = 128;
constexpr int kEach = 8;  // elements of a thread: of 16 bits a vector, of 32 two

struct MixedArgs {
  const char* in[2];
  Dtype dtype[2];
  char* out;
  Dtype out_dtype;
  std::int64_t size;
  int function;
};

// What a thread loads of an input, as its dtype has it.
struct Eight {
  unsigned word[kEach];

  __device__ __forceinline__ void load(const char* data, Dtype dtype, std::int64_t first,
                                       std::int64_t left) {
    if (left >= kEach) {
      bool wide = dtype == Dtype::float32;
      const auto* from = reinterpret_cast<const uint4*>(data + first * (wide ? 4 : 2));
      uint4 vector = from[0];
      memcpy(word, &vector, 16);
      if (!wide) return;
      vector = from[1];
      memcpy(word + 4, &vector, 16);
      return;
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j) word[j] = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (j >= left) continue;
      if (dtype == Dtype::float32) {
        word[j] = reinterpret_cast<const unsigned*>(data)[first + j];
      } else {
        unsigned bits = reinterpret_cast<const unsigned short*>(data)[first + j];
        word[j / 2] |= bits << (j % 2 * 16);
      }
    }
  }
  __device__ __forceinline__ void values(Dtype dtype, float (&x)[kEach]) const {
    if (dtype == Dtype::float32) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) x[j] = __uint_as_float(word[j]);
    } else if (dtype == Dtype::bfloat16) {
      values_of<bfloat16_t>(x);
    } else {
      values_of<half_t>(x);
    }
  }
  template <class T> __device__ __forceinline__ void values_of(float (&x)[kEach]) const {
    Pack<T, kEach> pack;
    memcpy(&pack, word, sizeof(pack));
    unpack(pack, x);
  }
};

template <class Op>
__device__ __forceinline__ void compute(const float (&x)[2][kEach], float (&y)[kEach]) {
#pragma unroll
  for (int j = 0; j < kEach; ++j) y[j] = Op{}(x[0][j], x[1][j]);
}

template <class T>
__device__ __forceinline__ void store(char* out, const float (&y)[kEach], std::int64_t first,
                                      std::int64_t left) {
  constexpr int W = 16 / sizeof(T);
#pragma unroll
  for (int begin = 0; begin < kEach; begin += W) {
    float part[W];
#pragma unroll
    for (int j = 0; j < W; ++j) part[j] = y[begin + j];
    store_pack<T, W>(reinterpret_cast<T*>(out) + first + begin, pack_of<T>(part), left - begin,
                     true);
  }
}

__global__ void __launch_bounds__(kMixedBlock)
    elementwise_mixed(const __grid_constant__ MixedArgs args) {
  wait_for_previous();
  std::int64_t first = (std::int64_t{blockIdx.x} * kMixedBlock + threadIdx.x) * kEach;
  std::int64_t left = args.size - first;
  if (left <= 0) return;
  Eight in[2];
#pragma unroll
  for (int k = 0; k < 2; ++k) in[k].load(args.in[k], args.dtype[k], first, left);
  float x[2][kEach], y[kEach] = {};
#pragma unroll
  for (int k = 0; k < 2; ++k) in[k].values(args.dtype[k], x[k]);
  switch (args.function) {
#define RENSA_UFUNC(name, inputs, rule, expression)                           \
  case number::name:                                                          \
    if constexpr (is_cheap(inputs, DtypeRule::rule)) compute<op::name>(x, y); \
    break;
#include "rensa/core/ufuncs/arithmetic.def"
#include "rensa/core/ufuncs/extrema.def"
#undef RENSA_UFUNC
    default: break;
  }
  switch (args.out_dtype) {
    case Dtype::float16: return store<half_t>(args.out, y, first, left);
    case Dtype::bfloat16: return store<bfloat16_t>(args.out, y, first, left);
    default: return store<float>(args.out, y, first, left);
  }
}

bool is_flat(const ArrayView& view) {
  bool floating =
      view.dtype == Dtype::float16 || view.dtype == Dtype::bfloat16 || view.dtype == Dtype::float32;
  return floating && view.data && view.ndim() == 1 && view.strides[0] == itemsize(view.dtype) &&
         is_aligned(view.data, 16);
}

}  // namespace

bool run_mixed(const operations::Elementwise& op, const LaunchContext& context,
               std::span<const ArrayView> views) {
  int function = number_of(op.ufunc);
  bool same = std::all_of(views.begin(), views.end(),
                          [&](const ArrayView& view) { return view.dtype == op.compute; });
  if (function == number::none || op.compute != Dtype::float32 || same) return false;
  if (!std::all_of(views.begin(), views.end(), is_flat)) return false;
  MixedArgs args = {{views[1].data, views[2].data},
                    {views[1].dtype, views[2].dtype},
                    views[0].data,
                    views[0].dtype,
                    views[0].size(),
                    function};
  launch_kernel(op.name(), context, elementwise_mixed, ceil_div(args.size, kMixedBlock * kEach),
                kMixedBlock, args);
  return true;
}

}  // namespace rensa::cuda

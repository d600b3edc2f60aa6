// Random numbers, dropout and arange on a GPU. What element i gets follows from i alone (see
// core/philox.h): a thread makes the elements of four words, or of eight where they are doubles.
#include <cmath>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/philox.h"
#include "rensa/device/operations.h"

namespace rensa {

namespace cuda {

namespace {

// The number of a step: in the kernel's arguments, or where a replay has put it.
__device__ __forceinline__ unsigned long long integer_of(const HostScalar& s) {
  return static_cast<unsigned long long>(s.device ? *static_cast<const long long*>(s.device)
                                                  : s.integer);
}

constexpr int kElements = 4;  // of one thread, whatever their words

template <int kWords> struct Words { unsigned int word[kElements * kWords]; };

/// The words of the elements [4 * i, 4 * i + 4).
template <int kWords>
__device__ __forceinline__ Words<kWords> words_of(const HostScalar& seed, const HostScalar& offset,
                                                  std::int64_t i) {
  Words<kWords> result;
  unsigned long long key = integer_of(seed), counter = integer_of(offset) + i * kWords;
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    PhiloxWords words = philox(key, counter + k);
#pragma unroll
    for (int j = 0; j < 4; ++j) result.word[4 * k + j] = words.word[j];
  }
  return result;
}

template <class V> inline constexpr int kWordsOf = sizeof(V) == 8 ? 2 : 1;

template <class V> __device__ __forceinline__ V uniform_of(const Words<kWordsOf<V>>& words, int i) {
  if constexpr (sizeof(V) == 8) return uniform_double(words.word[2 * i], words.word[2 * i + 1]);
  else return uniform_float(words.word[i]);
}

struct RandomArgs {
  HostScalar seed, offset;
  char* out;
  Dtype dtype;
  std::int64_t size;
  double a, b;                   // low, high or loc, scale
  unsigned long long low, span;  // of integers
  const char* in;                // of dropout
  float ratio;
  bool vector;  // four elements move in one load or store
};
using RandomKernel = void (*)(RandomArgs);

template <class V> struct Uniform {
  template <class T>
  static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t i,
                                              Pack<T, kElements>& pack) {
    V low = static_cast<V>(args.a), span = static_cast<V>(args.b) - low;
    auto words = words_of<kWordsOf<V>>(args.seed, args.offset, i);
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      pack.value[j] = convert<T>(low + span * uniform_of<V>(words, j));
    }
  }
};

// Box-Muller: each pair of uniforms gives two elements.
template <class V> struct Normal {
  template <class T>
  static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t i,
                                              Pack<T, kElements>& pack) {
    V loc = static_cast<V>(args.a), scale = static_cast<V>(args.b);
    auto words = words_of<kWordsOf<V>>(args.seed, args.offset, i);
#pragma unroll
    for (int j = 0; j < kElements; j += 2) {
      V radius = V(1) - uniform_of<V>(words, j), turn = V(2) * uniform_of<V>(words, j + 1);
      V length, sine, cosine;
      if constexpr (sizeof(V) == 8) {
        length = ::sqrt(-2.0 * ::log(radius));
        ::sincospi(turn, &sine, &cosine);
      } else {
        // The approximation (1 ulp) stays within the tolerance that normals have anyway.
        asm("sqrt.approx.f32 %0, %1;" : "=f"(length) : "f"(-2.0f * ::logf(radius)));
        ::sincospif(turn, &sine, &cosine);
      }
      pack.value[j] = convert<T>(loc + scale * (length * cosine));
      pack.value[j + 1] = convert<T>(loc + scale * (length * sine));
    }
  }
};

template <int kWords> struct Integers {
  template <class T>
  static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t i,
                                              Pack<T, kElements>& pack) {
    auto words = words_of<kWords>(args.seed, args.offset, i);
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      unsigned long long value;
      if constexpr (kWords == 1) {
        value = words.word[j] % static_cast<unsigned>(args.span);
      } else {
        value = (static_cast<unsigned long long>(words.word[2 * j]) << 32 | words.word[2 * j + 1]) %
                args.span;
      }
      pack.value[j] = convert<T>(args.low + value);
    }
  }
};

template <class V> struct Drop {
  template <class T>
  static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t i,
                                              Pack<T, kElements>& pack) {
    V keep = V(1) - static_cast<V>(args.a);
    std::int64_t begin = i * kElements;
    pack = load_pack<T, kElements>(reinterpret_cast<const T*>(args.in) + begin, args.size - begin,
                                   args.vector, T{});
    auto words = words_of<1>(args.seed, args.offset, i);
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      bool kept = uniform_float(words.word[j]) >= args.ratio;
      pack.value[j] = convert<T>(kept ? convert<V>(pack.value[j]) / keep : V(0));
    }
  }
};

template <class Filler, class T>
__global__ void __launch_bounds__(kBlock) fill_random(const __grid_constant__ RandomArgs args) {
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  std::int64_t begin = i * kElements;
  if (begin >= args.size) return;
  Pack<T, kElements> pack;
  Filler::template fill<T>(args, i, pack);
  store_pack<T, kElements>(reinterpret_cast<T*>(args.out) + begin, pack, args.size - begin,
                           args.vector);
}

template <template <class> class Filler> RandomKernel float_kernel(Dtype d) {
  switch (d) {
    case Dtype::float16: return fill_random<Filler<float>, half_t>;
    case Dtype::bfloat16: return fill_random<Filler<float>, bfloat16_t>;
    case Dtype::float32: return fill_random<Filler<float>, float>;
    default: return fill_random<Filler<double>, double>;
  }
}

template <int kWords> RandomKernel integer_kernel(Dtype d) {
  switch (d) {
    case Dtype::int8: return fill_random<Integers<kWords>, std::int8_t>;
    case Dtype::int16: return fill_random<Integers<kWords>, std::int16_t>;
    case Dtype::int32: return fill_random<Integers<kWords>, std::int32_t>;
    case Dtype::int64: return fill_random<Integers<kWords>, std::int64_t>;
    case Dtype::uint8: return fill_random<Integers<kWords>, std::uint8_t>;
    case Dtype::uint16: return fill_random<Integers<kWords>, std::uint16_t>;
    case Dtype::uint32: return fill_random<Integers<kWords>, std::uint32_t>;
    default: return fill_random<Integers<kWords>, std::uint64_t>;
  }
}

void launch_random(const char* operation, const LaunchContext& context, RandomKernel kernel,
                   const RandomArgs& args) {
  std::int64_t grid = ceil_div(ceil_div(args.size, kElements), kBlock);
  launch_kernel(operation, context, kernel, grid, kBlock, args);
}

// --- arange --------------------------------------------------------------------------------------

template <class V> struct ArangeArgs {
  V start, step;
  char* out;
  Dtype dtype;
  std::int64_t size, stride;
};

template <class V>
__global__ void __launch_bounds__(kBlock) fill_arange(const __grid_constant__ ArangeArgs<V> args) {
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (i >= args.size) return;
  store_any<V>(args.out + i * args.stride, args.dtype, args.start + static_cast<V>(i) * args.step);
}

template <class V>
void launch_arange(const Arange& op, const LaunchContext& context, V start, V step) {
  const ArrayView& out = op.out.view;
  ArangeArgs<V> args = {start, step, out.data, out.dtype, out.size(), out.strides[0]};
  launch_kernel(op.name(), context, fill_arange<V>, ceil_div(args.size, kBlock), kBlock, args);
}

}  // namespace

}  // namespace cuda

void Random::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::RandomArgs args = {};
  args.seed = seed;
  args.offset = offset;
  args.out = out.view.data;
  args.dtype = out.view.dtype;
  args.size = out.view.size();
  args.a = a;
  args.b = b;
  args.low = static_cast<unsigned long long>(low);
  args.span = static_cast<unsigned long long>(high) - args.low;
  args.vector = cuda::is_aligned(args.out, cuda::kElements * itemsize(args.dtype));
  cuda::RandomKernel kernel = nullptr;
  switch (kind) {
    case Kind::uniform: kernel = cuda::float_kernel<cuda::Uniform>(args.dtype); break;
    case Kind::normal: kernel = cuda::float_kernel<cuda::Normal>(args.dtype); break;
    case Kind::integers:
      kernel = args.span < 1ull << 32 ? cuda::integer_kernel<1>(args.dtype)
                                      : cuda::integer_kernel<2>(args.dtype);
      break;
  }
  cuda::launch_random(name(), context, kernel, args);
}

void Dropout::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::RandomArgs args = {};
  args.seed = seed;
  args.offset = offset;
  args.in = in.view.data;
  args.out = out.view.data;
  args.dtype = out.view.dtype;
  args.size = out.view.size();
  args.a = ratio;
  args.ratio = static_cast<float>(ratio);
  std::int64_t bytes = cuda::kElements * itemsize(args.dtype);
  args.vector = cuda::is_aligned(args.out, bytes) && cuda::is_aligned(args.in, bytes);
  cuda::launch_random(name(), context, cuda::float_kernel<cuda::Drop>(args.dtype), args);
}

void Arange::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  char kind = dtype_kind(out.view.dtype);
  if (start.is_integral() && step.is_integral() && kind != 'f' && kind != 'c') {
    return cuda::launch_arange(*this, context, start.as<unsigned long long>(),
                               step.as<unsigned long long>());
  }
  cuda::launch_arange(*this, context, start.real(), step.real());
}

}  // namespace rensa

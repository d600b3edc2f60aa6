// Random numbers on a GPU.
#include <cmath>

#include "rensa/core/random_integers.h"
#include "rensa/operations/random/cuda_philox.cuh"
#include "rensa/operations/random/random.h"

namespace rensa::cuda {

namespace {

using operations::Random;

constexpr int kPlaces = 4;  // of one thread that makes an order

using RandomKernel = void (*)(RandomArgs);

template <class V> struct Uniform {
  using Args = RandomArgs;
  static constexpr int kWords = kWordsOf<V>;
  template <class T>
  static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t,
                                              const Words<kWords>& words,
                                              Pack<T, kElements>& pack) {
    V low = static_cast<V>(args.a), span = static_cast<V>(args.b) - low;
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      pack.value[j] = convert<T>(low + span * uniform_of<V>(words, j));
    }
  }
};

/// -log(1 - x) * kFactor for x in [0, 1) by the special function unit. The absolute error of its
/// logarithm is 2e-7, too much for small x: below 1 / kBelow a series of kTerms is computed
/// instead.
template <int kFactor, int kTerms, int kBelow>
__device__ __forceinline__ float minus_log_below_1(float x) {
  float log2, series = static_cast<float>(kFactor) / kTerms;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log2) : "f"(1.0f - x));
#pragma unroll
  for (int k = kTerms - 1; k > 0; --k)
    series = __fmaf_rn(series, x, static_cast<float>(kFactor) / k);
  return x < 1.0f / kBelow ? series * x : log2 * (kFactor * -0.6931471805599453f);
}

// loc + scale * sqrt(-2 log(1 - u)) * (cos(2 pi v), sin(2 pi v)).

/// v = uniform_float(word). Computed by the special function unit, whose sine and cosine are off by
/// at most 4e-7 for angles in [-pi, pi). The angle is off by at most 4e-7, the length by 1e-6 where
/// it is about 0.2, and by less elsewhere. Standard normals are within 3e-6 of exact ones, mostly
/// within 3e-7.
__device__ __forceinline__ void box_muller(float u, unsigned word, float loc, float scale, float* x,
                                           float* y) {
  float length, sine, cosine;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(length) : "f"(minus_log_below_1<2, 3, 64>(u)));
  length *= -scale;
  // The first 23 bits of 2 v - 1, and half of the 24th, without a conversion, which would be one
  // more piece of work for that unit. The angle is half a turn on: sine and cosine change signs.
  constexpr float kPi = 3.1415926535897932f;
  float angle =
      __fmaf_rn(__uint_as_float(word >> 9 | 0x40000000u) - 3.0f, kPi, kPi * 5.9604644775390625e-8f);
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(cosine) : "f"(angle));
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(sine) : "f"(angle));
  *x = __fmaf_rn(length, cosine, loc);
  *y = __fmaf_rn(length, sine, loc);
}

__device__ __forceinline__ void box_muller(double u, double v, double loc, double scale, double* x,
                                           double* y) {
  double length = scale * ::sqrt(-2.0 * ::log(1.0 - u)), sine, cosine;
  ::sincospi(2.0 * v, &sine, &cosine);
  *x = loc + length * cosine;
  *y = loc + length * sine;
}

// Box-Muller: each pair of uniforms gives two elements.
template <class V> struct Normal {
  using Args = RandomArgs;
  static constexpr int kWords = kWordsOf<V>;
  template <class T>
  static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t,
                                              const Words<kWords>& words,
                                              Pack<T, kElements>& pack) {
    V loc = static_cast<V>(args.a), scale = static_cast<V>(args.b);
#pragma unroll
    for (int j = 0; j < kElements; j += 2) {
      V x, y;
      if constexpr (sizeof(V) == 8) {
        box_muller(uniform_of<V>(words, j), uniform_of<V>(words, j + 1), loc, scale, &x, &y);
      } else {
        box_muller(uniform_float(words.word[j]), words.word[j + 1], loc, scale, &x, &y);
      }
      pack.value[j] = convert<T>(x);
      pack.value[j + 1] = convert<T>(y);
    }
  }
};

/// The inverse distribution functions, of u in (0, 1).
template <Random::Kind kKind, class V> __device__ __forceinline__ V inverse(V u) {
  V nearer = u < V(0.5) ? u : V(1) - u;  // exact, as u is symmetric about 1/2
  if constexpr (kKind == Random::Kind::exponential) {
    if constexpr (sizeof(V) == 4) return minus_log_below_1<1, 8, 8>(1.0f - u);
    else return -m::log(u);
  } else if constexpr (kKind == Random::Kind::gumbel) {
    return -m::log(-m::log(u));
  } else if constexpr (kKind == Random::Kind::laplace) {
    V size = m::log(V(2) * nearer);
    return u < V(0.5) ? size : -size;
  } else if constexpr (kKind == Random::Kind::logistic) {
    return m::log(u / (V(1) - u));
  } else {
    V angle = V(3.141592653589793238) * nearer, size = m::cos(angle) / m::sin(angle);
    return u < V(0.5) ? -size : size;
  }
}

template <Random::Kind kKind> struct Inverse {
  template <class V> struct Filler {
    using Args = RandomArgs;
    static constexpr int kWords = kWordsOf<V>;
    template <class T>
    static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t,
                                                const Words<kWords>& words,
                                                Pack<T, kElements>& pack) {
      V loc = static_cast<V>(args.a), scale = static_cast<V>(args.b);
#pragma unroll
      for (int j = 0; j < kElements; ++j) {
        V u;
        if constexpr (sizeof(V) == 8) u = open_double(words.word[2 * j], words.word[2 * j + 1]);
        else u = open_float(words.word[j]);
        pack.value[j] = convert<T>(loc + scale * inverse<kKind>(u));
      }
    }
  };
};

template <int kCount> struct Integers {
  using Args = RandomArgs;
  static constexpr int kWords = kCount;
  template <class T>
  static __device__ __forceinline__ void fill(const RandomArgs& args, std::int64_t,
                                              const Words<kWords>& words,
                                              Pack<T, kElements>& pack) {
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      unsigned long long value;
      if constexpr (kWords == 1) {
        value = scaled(words.word[j], static_cast<unsigned>(args.span));
      } else {
        unsigned long long pair[kWords / 2];
#pragma unroll
        for (int k = 0; k < kWords / 2; ++k) {
          const unsigned* word = words.word + kWords * j + 2 * k;
          pair[k] = static_cast<unsigned long long>(word[0]) << 32 | word[1];
        }
        if constexpr (kWords == 4) value = scaled(pair[0], pair[1], args.span);
        else value = args.span != 0 ? scaled(pair[0], args.span) : pair[0];
      }
      pack.value[j] = convert<T>(args.low + value);
    }
  }
};

__global__ void __launch_bounds__(kBlock) fill_order(const __grid_constant__ RandomArgs args) {
  wait_for_previous();
  __shared__ unsigned keys[PseudoOrder::kRounds];
  if (threadIdx.x < PseudoOrder::kCounters) {
    PhiloxWords words = philox(integer_of(args.seed), integer_of(args.offset) + threadIdx.x);
#pragma unroll
    for (int j = 0; j < 4; ++j) keys[4 * threadIdx.x + j] = words.word[j];
  }
  __syncthreads();
  PseudoOrder order;
  order.set_size(static_cast<unsigned long long>(args.size));
#pragma unroll
  for (int round = 0; round < PseudoOrder::kRounds; ++round) order.key[round] = keys[round];
  auto* out = reinterpret_cast<unsigned long long*>(args.out);
  std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kBlock * kPlaces) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kPlaces; ++k) {
    std::int64_t i = first + k * kBlock;
    if (i < args.size) out[i] = order(static_cast<unsigned long long>(i));
  }
}

template <template <class> class Filler> RandomKernel float_kernel(Dtype d) {
  switch (d) {
    case Dtype::float16: return fill_random<Filler<float>, half_t>;
    case Dtype::bfloat16: return fill_random<Filler<float>, bfloat16_t>;
    case Dtype::float32: return fill_random<Filler<float>, float>;
    default: return fill_random<Filler<double>, double>;
  }
}

template <Random::Kind kKind> RandomKernel inverse_kernel(Dtype d) {
  return float_kernel<Inverse<kKind>::template Filler>(d);
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

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

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
  args.span = span;
  args.vector = cuda::is_aligned(args.out, cuda::kElements * itemsize(args.dtype));
  cuda::RandomKernel kernel = nullptr;
  switch (kind) {
    case Kind::uniform: kernel = cuda::float_kernel<cuda::Uniform>(args.dtype); break;
    case Kind::normal: kernel = cuda::float_kernel<cuda::Normal>(args.dtype); break;
    case Kind::exponential: kernel = cuda::inverse_kernel<Kind::exponential>(args.dtype); break;
    case Kind::gumbel: kernel = cuda::inverse_kernel<Kind::gumbel>(args.dtype); break;
    case Kind::laplace: kernel = cuda::inverse_kernel<Kind::laplace>(args.dtype); break;
    case Kind::logistic: kernel = cuda::inverse_kernel<Kind::logistic>(args.dtype); break;
    case Kind::cauchy: kernel = cuda::inverse_kernel<Kind::cauchy>(args.dtype); break;
    case Kind::integers:
      kernel = words == 1   ? cuda::integer_kernel<1>(args.dtype)
               : words == 2 ? cuda::integer_kernel<2>(args.dtype)
                            : cuda::integer_kernel<4>(args.dtype);
      break;
    case Kind::order:
      return cuda::launch_kernel(name(), context, cuda::fill_order,
                                 ceil_div(args.size, cuda::kPlaces * cuda::kBlock), cuda::kBlock,
                                 args);
  }
  cuda::launch_random(name(), context, kernel, args);
}

}  // namespace rensa::operations

// What the reduction kernels accumulate: rows of reductions.def, and what carries more than a
// value.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/functors.h"
#include "rensa/portable/row_reduction.h"

namespace rensa::cuda {

#if defined(__CUDACC__)

// kBlockwise: several values are taken at once where they are there, into one accumulator.

/// A row of reductions.def over V.
template <class R, class V> struct RowReducer : red::Of<R, V> {
  using Value = V;
  using Acc = V;
  static constexpr bool kBlockwise = false;
  static __device__ __forceinline__ Acc take(Acc acc, V value, std::int64_t) {
    return red::Of<R, V>::take(acc, value);
  }
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t count) {
    store_any<V>(p, dtype, R::post(acc, static_cast<long long>(count)));
  }
};

/// The position of the greatest (least) element, the first of equals; NaN beats every number.
template <class V, bool kMax> struct ArgReducer {
  using Value = V;
  struct Acc {
    V value;
    long long index;  // -1: none yet
  };
  static constexpr bool kBlockwise = false;
  static __device__ __forceinline__ Acc identity() { return {V(0), -1}; }
  /// `index` is greater than those taken before.
  static __device__ __forceinline__ Acc take(Acc acc, V value, std::int64_t index) {
    bool better = kMax ? acc.value < value : value < acc.value;
    better |= (acc.index < 0) | (!(value == value) & (acc.value == acc.value));
    return {better ? value : acc.value, better ? index : acc.index};
  }
  static __device__ __forceinline__ Acc combine(Acc a, Acc b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    bool a_nan = !(a.value == a.value), b_nan = !(b.value == b.value);
    bool better = kMax ? a.value < b.value : b.value < a.value;
    bool equal = a_nan | b_nan ? a_nan & b_nan : a.value == b.value;
    better = a_nan | b_nan ? b_nan & !a_nan : better;
    return better | (equal & (b.index < a.index)) ? b : a;
  }
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t) {
    store_any<long long>(p, dtype, acc.index);
  }
};

/// What is made of how many elements are not 0.
enum class TruthPost { count, any, all };
template <TruthPost kPost> struct TruthReducer {
  using Value = long long;
  using Acc = long long;
  static constexpr bool kBlockwise = false;
  static __device__ __forceinline__ Acc identity() { return 0; }
  static __device__ __forceinline__ Acc take(Acc acc, Value value, std::int64_t) {
    return acc + value;
  }
  static __device__ __forceinline__ Acc combine(Acc a, Acc b) { return a + b; }
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t count) {
    long long result = kPost == TruthPost::count ? acc
                       : kPost == TruthPost::any ? acc != 0
                                                 : acc == static_cast<long long>(count);
    store_any<long long>(p, dtype, result);
  }
};

/// The sum of (value - mean)^2: means and squares of blocks of values, joined as Chan, Golub and
/// LeVeque do.
template <class V> struct DeviationsReducer {
  using Value = V;
  struct Acc {
    V mean, squares, n;  // n is a weight alone and may be rounded
  };
  static constexpr bool kBlockwise = true;
  static __device__ __forceinline__ Acc identity() { return {V(0), V(0), V(0)}; }
  static __device__ __forceinline__ Acc take(Acc acc, V value, std::int64_t) {
    return combine(acc, {value, value - value, V(1)});
  }
  template <int n> static __device__ __forceinline__ Acc take_all(Acc acc, const V (&x)[n]) {
    V sum = x[0], squares = V(0);
#pragma unroll
    for (int i = 1; i < n; ++i) sum += x[i];
    V mean = sum * (V(1) / V(n));
#pragma unroll
    for (int i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    return combine(acc, {mean, squares, V(n)});
  }
  static __device__ __forceinline__ Acc combine(Acc a, Acc b) {
    if (b.n == V(0)) return a;
    if (a.n == V(0)) return b;
    V n = a.n + b.n, share = b.n / n, apart = b.mean - a.mean;
    return {a.mean + apart * share, a.squares + b.squares + apart * apart * a.n * share, n};
  }
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t) {
    store_any<V>(p, dtype, acc.squares);
  }
};

/// The mean of what is not NaN.
template <class V> struct NanMeanReducer {
  using Value = V;
  struct Acc {
    V sum;
    long long n;
  };
  static constexpr bool kBlockwise = false;
  static __device__ __forceinline__ Acc identity() { return {V(0), 0}; }
  static __device__ __forceinline__ Acc take(Acc acc, V value, std::int64_t) {
    bool number = value == value;
    return {acc.sum + (number ? value : V(0)), acc.n + number};
  }
  static __device__ __forceinline__ Acc combine(Acc a, Acc b) { return {a.sum + b.sum, a.n + b.n}; }
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t) {
    store_any<V>(p, dtype, acc.sum / V(acc.n));
  }
};

#endif  // __CUDACC__

}  // namespace rensa::cuda

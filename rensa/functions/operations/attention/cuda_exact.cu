// Attention with products in the sums' type, float or double: what the tensor cores do not take.
// A block of 256 threads has queries (or keys) and goes over the others tile by tile; a thread has
// every 16th row and every 16th column of each product.
#include <algorithm>

#include "rensa/functions/operations/attention/cuda_masks.cuh"

namespace rensa::cuda {

namespace {

constexpr int kSide = 16;  // threads along each side of a tile
constexpr int kThreads = kSide * kSide;

/// A tile is 16 * kParts queries by as many keys; kDepth columns or rows of operands are in shared
/// memory at a time.
template <class V> inline constexpr int kParts = sizeof(V) == 8 ? 2 : 4;
template <class V> inline constexpr int kExtent = kSide* kParts<V>;
template <class V> inline constexpr int kDepth = sizeof(V) == 8 ? 8 : 16;

__device__ __forceinline__ int thread_row() { return static_cast<int>(threadIdx.x) / kSide; }
__device__ __forceinline__ int thread_column() { return static_cast<int>(threadIdx.x) % kSide; }

/// Element `column` of row `row` of a head, 0 beyond `rows` and the width.
template <class V>
__device__ __forceinline__ V element(const HeadRows& x, Dtype dtype, long long b, int h, int row,
                                     int rows, int column) {
  if (row >= rows || column >= x.width) return V(0);
  long long place = b * x.batch + h * x.head + row * x.row + column;
  if constexpr (sizeof(V) == 8) {
    return reinterpret_cast<const double*>(x.data)[place];
  } else {
    switch (dtype) {
      case Dtype::float32: return reinterpret_cast<const float*>(x.data)[place];
      case Dtype::float16: return convert<V>(reinterpret_cast<const half_t*>(x.data)[place]);
      default: return convert<V>(reinterpret_cast<const bfloat16_t*>(x.data)[place]);
    }
  }
}

template <class V>
__device__ __forceinline__ void store_element(const HeadRows& x, Dtype dtype, long long b, int h,
                                              int row, int column, V value) {
  long long place = b * x.batch + h * x.head + row * x.row + column;
  if constexpr (sizeof(V) == 8) {
    reinterpret_cast<double*>(x.data)[place] = value;
  } else {
    switch (dtype) {
      case Dtype::float32: reinterpret_cast<float*>(x.data)[place] = value; break;
      case Dtype::float16: reinterpret_cast<half_t*>(x.data)[place] = convert<half_t>(value); break;
      default: reinterpret_cast<bfloat16_t*>(x.data)[place] = convert<bfloat16_t>(value);
    }
  }
}

/// Rows of a head, from `row` on; there are none from `rows` on.
struct Operand2d {
  const HeadRows& x;
  long long b;
  int h, row, rows;
};

template <class V> using Scores = V[kParts<V>][kParts<V>];
template <class V, int D> using Sums = V[kParts<V>][D / kSide];

template <class V, int D> struct SharedMemory {
  static constexpr int kPitch = kDepth<V> + 1;
  union {
    struct {
      V a[kExtent<V>][kPitch], b[kExtent<V>][kPitch];
    } columns;
    V rows[kDepth<V>][D];
  };
  V weights[kExtent<V>][kExtent<V> + 1];
};

/// c = a @ b^T, of rows of two heads.
template <class V, int D>
__device__ void multiply_rows(Scores<V>& c, SharedMemory<V, D>& shared, Dtype dtype,
                              const Operand2d& a, const Operand2d& b) {
  int ty = thread_row(), tx = thread_column();
#pragma unroll
  for (int p = 0; p < kParts<V>; ++p) {
#pragma unroll
    for (int q = 0; q < kParts<V>; ++q) c[p][q] = 0;
  }
  for (int k = 0; k < a.x.width; k += kDepth<V>) {
    __syncthreads();
    for (int place = threadIdx.x; place < kExtent<V> * kDepth<V>; place += kThreads) {
      int row = place / kDepth<V>, column = place % kDepth<V>;
      shared.columns.a[row][column] =
          element<V>(a.x, dtype, a.b, a.h, a.row + row, a.rows, k + column);
      shared.columns.b[row][column] =
          element<V>(b.x, dtype, b.b, b.h, b.row + row, b.rows, k + column);
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth<V>; ++step) {
      V left[kParts<V>], right[kParts<V>];
#pragma unroll
      for (int p = 0; p < kParts<V>; ++p) {
        left[p] = shared.columns.a[ty + p * kSide][step];
        right[p] = shared.columns.b[tx + p * kSide][step];
      }
#pragma unroll
      for (int p = 0; p < kParts<V>; ++p) {
#pragma unroll
        for (int q = 0; q < kParts<V>; ++q) c[p][q] = fma(left[p], right[q], c[p][q]);
      }
    }
  }
}

/// Every thread's weights, as all threads may read them.
template <class V, int D>
__device__ __forceinline__ void share(const Scores<V>& weights, SharedMemory<V, D>& shared) {
  __syncthreads();
#pragma unroll
  for (int p = 0; p < kParts<V>; ++p) {
#pragma unroll
    for (int q = 0; q < kParts<V>; ++q) {
      shared.weights[thread_row() + p * kSide][thread_column() + q * kSide] = weights[p][q];
    }
  }
}

/// sums += weights @ b, or their transpose @ b, of what share() took.
template <class V, int D, bool kTransposed>
__device__ void add_product(Sums<V, D>& sums, SharedMemory<V, D>& shared, Dtype dtype,
                            const Operand2d& b) {
  int ty = thread_row(), tx = thread_column();
  for (int k = 0; k < kExtent<V>; k += kDepth<V>) {
    __syncthreads();
    for (int place = threadIdx.x; place < kDepth<V> * D; place += kThreads) {
      int row = place / D, column = place % D;
      shared.rows[row][column] = element<V>(b.x, dtype, b.b, b.h, b.row + k + row, b.rows, column);
    }
    __syncthreads();
#pragma unroll 4
    for (int step = 0; step < kDepth<V>; ++step) {
      V left[kParts<V>];
#pragma unroll
      for (int p = 0; p < kParts<V>; ++p) {
        left[p] = kTransposed ? shared.weights[k + step][ty + p * kSide]
                              : shared.weights[ty + p * kSide][k + step];
      }
#pragma unroll
      for (int q = 0; q < D / kSide; ++q) {
        V right = shared.rows[step][tx + q * kSide];
#pragma unroll
        for (int p = 0; p < kParts<V>; ++p) sums[p][q] = fma(left[p], right, sums[p][q]);
      }
    }
  }
}

template <class V, int D>
__device__ __forceinline__ void store_sums(const Sums<V, D>& sums, const HeadRows& to, Dtype dtype,
                                           long long b, int h, int row, int rows, V factor) {
#pragma unroll
  for (int p = 0; p < kParts<V>; ++p) {
    int i = row + thread_row() + p * kSide;
    if (i >= rows) continue;
#pragma unroll
    for (int q = 0; q < D / kSide; ++q) {
      int column = thread_column() + q * kSide;
      if (column < to.width) store_element(to, dtype, b, h, i, column, sums[p][q] * factor);
    }
  }
}

// The threads of a row are 16 lanes next to each other.
template <class V> __device__ __forceinline__ V sum_of_row(V x) {
#pragma unroll
  for (int step = 1; step < kSide; step *= 2) x += shuffle_xor(x, step);
  return x;
}
template <class V> __device__ __forceinline__ V greatest_of_row(V x) {
#pragma unroll
  for (int step = 1; step < kSide; step *= 2) {
    x = fmax(x, shuffle_xor(x, step));
  }
  return x;
}

/// A block's queries or keys: of which head, and from which row on.
struct Part {
  long long b;
  int h, first;
  __device__ Part(int heads, int rows, int extent) {
    int blocks = (rows + extent - 1) / extent;
    long long outer = blockIdx.x / blocks;
    b = outer / heads;
    h = static_cast<int>(outer % heads);
    first = static_cast<int>(blockIdx.x % blocks) * extent;
  }
};

template <class V, int D>
__global__ void __launch_bounds__(kThreads)
    exact_attention(const __grid_constant__ AttentionArgs args) {
  wait_for_previous();
  __shared__ SharedMemory<V, D> shared;
  constexpr int kTile = kExtent<V>;
  Part part(args.heads, args.queries, kTile);
  long long b = part.b, head = b * args.heads + part.h;
  int h = part.h, group = h / (args.heads / args.groups), ty = thread_row(), tx = thread_column();
  int length = length_of(args, b, h);
  int end = args.causal ? min(length, part.first + kTile) : length;
  HeadMask<V> mask(args, b, h, length);
  AttentionDropoutWords dropout = dropout_of(args);
  V scale = static_cast<V>(args.scale), kNone = -m::infinity<V>();
  Sums<V, D> out = {};
  V greatest[kParts<V>], total[kParts<V>] = {};
#pragma unroll
  for (int p = 0; p < kParts<V>; ++p) greatest[p] = kNone;
  for (int j = 0; j < end; j += kTile) {
    Scores<V> s;
    multiply_rows<V, D>(s, shared, args.dtype, {args.query, b, h, part.first, args.queries},
                        {args.key, b, group, j, length});
#pragma unroll
    for (int p = 0; p < kParts<V>; ++p) {
      int i = part.first + ty + p * kSide;
      V here = greatest[p];
#pragma unroll
      for (int q = 0; q < kParts<V>; ++q) {
        s[p][q] = mask.apply(s[p][q] * scale, i, j + tx + q * kSide, args.queries, V(1));
        here = fmax(here, s[p][q]);
      }
      here = greatest_of_row(here);
      V reference = here == kNone ? V(0) : here, factor = exp(greatest[p] - reference), sum = 0;
      greatest[p] = here;
#pragma unroll
      for (int q = 0; q < kParts<V>; ++q) {
        s[p][q] = exp(s[p][q] - reference);
        sum += s[p][q];
        if (args.dropout_ratio > 0 && !dropout.keeps(head, i, j + tx + q * kSide)) s[p][q] = 0;
      }
      total[p] = fma(total[p], factor, sum);
#pragma unroll
      for (int q = 0; q < D / kSide; ++q) out[p][q] *= factor;
    }
    share<V, D>(s, shared);
    add_product<V, D, false>(out, shared, args.dtype, {args.value, b, group, j, length});
  }
  V kept = static_cast<V>(1 / (1 - args.dropout_ratio));
#pragma unroll
  for (int p = 0; p < kParts<V>; ++p) {
    V all = sum_of_row(total[p]);
    V inverse = all == V(0) ? V(0) : kept / all;
#pragma unroll
    for (int q = 0; q < D / kSide; ++q) out[p][q] *= inverse;
    int i = part.first + ty + p * kSide;
    if (tx == 0 && i < args.queries) {
      reinterpret_cast<V*>(args.lse)[head * args.queries + i] =
          all == V(0) ? m::infinity<V>() : greatest[p] + log(all);
    }
  }
  store_sums<V, D>(out, args.out, args.dtype, b, h, part.first, args.queries, V(1));
}

/// Of a tile of queries from i on and keys from j on: `s` the weights as dropout leaves them, `ds`
/// the gradients of the scores.
template <class V, int D>
__device__ void differentiate(Scores<V>& s, Scores<V>& ds, SharedMemory<V, D>& shared,
                              const AttentionArgs& args, const HeadMask<V>& mask,
                              const AttentionDropoutWords& dropout, long long b, int h, int group,
                              int i, int j) {
  multiply_rows<V, D>(s, shared, args.dtype, {args.query, b, h, i, args.queries},
                      {args.key, b, group, j, mask.length});
  multiply_rows<V, D>(ds, shared, args.dtype, {args.gout, b, h, i, args.queries},
                      {args.value, b, group, j, mask.length});
  long long head = b * args.heads + h;
  V scale = static_cast<V>(args.scale), kept = static_cast<V>(1 / (1 - args.dropout_ratio));
#pragma unroll
  for (int p = 0; p < kParts<V>; ++p) {
    int row = i + thread_row() + p * kSide;
    bool there = row < args.queries;
    long long place = head * args.queries + row;
    V lse = there ? reinterpret_cast<const V*>(args.lse)[place] : m::infinity<V>();
    V delta = there ? reinterpret_cast<const V*>(args.delta)[place] : V(0);
#pragma unroll
    for (int q = 0; q < kParts<V>; ++q) {
      int column = j + thread_column() + q * kSide;
      V weight = exp(mask.apply(s[p][q] * scale, row, column, args.queries, V(1)) - lse);
      V left = weight, gradient = ds[p][q];
      if (args.dropout_ratio > 0) {
        V factor = dropout.keeps(head, row, column) ? kept : V(0);
        left *= factor, gradient *= factor;
      }
      s[p][q] = left;
      ds[p][q] = weight * (gradient - delta);
    }
  }
}

template <class V, int D>
__global__ void __launch_bounds__(kThreads)
    exact_attention_grad_of_keys(const __grid_constant__ AttentionArgs args) {
  wait_for_previous();
  __shared__ SharedMemory<V, D> shared;
  constexpr int kTile = kExtent<V>;
  Part part(args.groups, args.keys, kTile);
  long long b = part.b;
  int group = part.h, each = args.heads / args.groups, j = part.first;
  AttentionDropoutWords dropout = dropout_of(args);
  Sums<V, D> gkey = {}, gvalue = {};
  for (int h = group * each; h < (group + 1) * each; ++h) {
    int length = length_of(args, b, h);
    if (length <= j) continue;
    HeadMask<V> mask(args, b, h, length);
    for (int i = args.causal ? j : 0; i < args.queries; i += kTile) {
      Scores<V> s, ds;
      differentiate<V, D>(s, ds, shared, args, mask, dropout, b, h, group, i, j);
      share<V, D>(s, shared);
      add_product<V, D, true>(gvalue, shared, args.dtype, {args.gout, b, h, i, args.queries});
      share<V, D>(ds, shared);
      add_product<V, D, true>(gkey, shared, args.dtype, {args.query, b, h, i, args.queries});
    }
  }
  if (args.gkey.data != nullptr) {
    store_sums<V, D>(gkey, args.gkey, args.dtype, b, group, j, args.keys,
                     static_cast<V>(args.scale));
  }
  if (args.gvalue.data != nullptr) {
    store_sums<V, D>(gvalue, args.gvalue, args.dtype, b, group, j, args.keys, V(1));
  }
}

template <class V, int D>
__global__ void __launch_bounds__(kThreads)
    exact_attention_grad_of_queries(const __grid_constant__ AttentionArgs args) {
  wait_for_previous();
  __shared__ SharedMemory<V, D> shared;
  constexpr int kTile = kExtent<V>;
  Part part(args.heads, args.queries, kTile);
  long long b = part.b;
  int h = part.h, group = h / (args.heads / args.groups), length = length_of(args, b, h);
  int end = args.causal ? min(length, part.first + kTile) : length;
  HeadMask<V> mask(args, b, h, length);
  AttentionDropoutWords dropout = dropout_of(args);
  Sums<V, D> gquery = {};
  for (int j = 0; j < end; j += kTile) {
    Scores<V> s, ds;
    differentiate<V, D>(s, ds, shared, args, mask, dropout, b, h, group, part.first, j);
    share<V, D>(ds, shared);
    add_product<V, D, false>(gquery, shared, args.dtype, {args.key, b, group, j, length});
  }
  store_sums<V, D>(gquery, args.gquery, args.dtype, b, h, part.first, args.queries,
                   static_cast<V>(args.scale));
}

/// Calls f.template operator()<V, D>() for what the operation has.
template <class F> void dispatch(const AttentionArgs& args, const F& f) {
  int width = std::max(args.query.width, args.value.width);
  auto with_type = [&]<class V>() {
    if (width <= 64) f.template operator()<V, 64>();
    else if (width <= 128) f.template operator()<V, 128>();
    else f.template operator()<V, 256>();
  };
  if (args.dtype == Dtype::float64) with_type.template operator()<double>();
  else with_type.template operator()<float>();
}

std::int64_t blocks_of(std::int64_t heads, int rows, int extent) {
  return heads * ((rows + extent - 1) / extent);
}

}  // namespace

void launch_exact_attention(const LaunchContext& context, const AttentionArgs& args) {
  dispatch(args, [&]<class V, int D>() {
    launch_kernel(args.operation, context, exact_attention<V, D>,
                  blocks_of(args.batch * args.heads, args.queries, kExtent<V>), kThreads, args);
  });
}

void launch_exact_attention_grad(const LaunchContext& context, const AttentionArgs& args) {
  dispatch(args, [&]<class V, int D>() {
    if (args.gkey.data != nullptr || args.gvalue.data != nullptr) {
      launch_kernel(args.operation, context, exact_attention_grad_of_keys<V, D>,
                    blocks_of(args.batch * args.groups, args.keys, kExtent<V>), kThreads, args);
    }
    if (args.gquery.data != nullptr) {
      launch_kernel(args.operation, context, exact_attention_grad_of_queries<V, D>,
                    blocks_of(args.batch * args.heads, args.queries, kExtent<V>), kThreads, args);
    }
  });
}

}  // namespace rensa::cuda

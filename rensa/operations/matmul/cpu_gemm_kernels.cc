// The innermost part of a product, for one instruction set: a tile of c, its sums held in
// registers.
#include <cstdint>

#include "rensa/operations/matmul/cpu_gemm.h"

namespace rensa::host::RENSA_SET {

namespace {

// What fits the registers.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kTileRows = 14;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kTileRows = 6;
#else
constexpr int kVectorBytes = 16, kTileRows = 6;
#endif

template <class V, int kRows, int kVectors>
void gemm_tile(std::int64_t k, const V* p, std::int64_t row_stride, std::int64_t step, const V* q,
               std::int64_t q_stride, V* c, std::int64_t c_stride, bool add, const char* ahead,
               std::int64_t ahead_step) {
  constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(V));
  typedef V Vector __attribute__((vector_size(kVectorBytes)));
  typedef V Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(V)), may_alias));
  Vector sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] =
          add ? *reinterpret_cast<const Unaligned*>(c + i * c_stride + v * kLanes) : Vector{};
    }
  }
  // c is written at the end: by then its lines are at hand.
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(c + i * c_stride + v * kLanes, 1);
  }
  // A pointer for every third row: the others are reached by the addressing modes.
  constexpr int kBases = (kRows + 2) / 3;
  const V* base[kBases];
  for (int i = 0; i < kBases; ++i) base[i] = p + 3 * i * row_stride;
  for (; k > 0; --k) {
    Vector b[kVectors];
    __builtin_prefetch(ahead, 0, 2);
    ahead += ahead_step;
    for (int v = 0; v < kVectors; ++v) b[v] = *reinterpret_cast<const Unaligned*>(q + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      V a = base[i / 3][i % 3 * row_stride];
      for (int v = 0; v < kVectors; ++v) sums[i][v] += a * b[v];
    }
    for (int i = 0; i < kBases; ++i) base[i] += step;
    q += q_stride;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Unaligned*>(c + i * c_stride + v * kLanes) = sums[i][v];
    }
  }
}

// A row of c, of so many columns that each step reads several lines of q: with one alone most of
// the memory's bandwidth is left unused.
template <class V>
void gemm_row(std::int64_t k, const V* p, std::int64_t step, const V* q, std::int64_t q_stride,
              V* c, bool add) {
  constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(V));
  constexpr int kVectors = GemmKernels<V>::kRowVectors, kStepsAhead = 8;
  typedef V Vector __attribute__((vector_size(kVectorBytes)));
  typedef V Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(V)), may_alias));
  Vector sums[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = add ? *reinterpret_cast<const Unaligned*>(c + v * kLanes) : Vector{};
  }
  for (; k > 0; --k, p += step, q += q_stride) {
    V a = *p;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      __builtin_prefetch(q + kStepsAhead * q_stride + v * kLanes);
      sums[v] += a * *reinterpret_cast<const Unaligned*>(q + v * kLanes);
    }
  }
  for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Unaligned*>(c + v * kLanes) = sums[v];
}

// The sum of a vector's values, halves added to halves.
template <int kLanes, class V, class Vector> V sum_of(const Vector& values) {
  V parts[kLanes];
  __builtin_memcpy(parts, &values, sizeof(parts));
#pragma GCC unroll 4
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) parts[i] += parts[i + width];
  }
  return parts[0];
}

// One dot product, in sums enough for additions not to wait for each other.
template <class V> V gemm_dot(std::int64_t k, const V* p, const V* q) {
  constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(V)), kSums = 8;
  typedef V Vector __attribute__((vector_size(kVectorBytes)));
  typedef V Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(V)), may_alias));
  Vector sums[kSums] = {};
  std::int64_t x = 0;
  for (; x + kSums * kLanes <= k; x += kSums * kLanes) {
    const auto *a = reinterpret_cast<const Unaligned*>(p + x),
               *b = reinterpret_cast<const Unaligned*>(q + x);
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i) sums[i] += a[i] * b[i];
  }
  for (; x + kLanes <= k; x += kLanes) {
    sums[0] +=
        *reinterpret_cast<const Unaligned*>(p + x) * *reinterpret_cast<const Unaligned*>(q + x);
  }
#pragma GCC unroll 8
  for (int width = kSums / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  V rest = V(0);
  for (; x < k; ++x) rest += p[x] * q[x];
  return sum_of<kLanes, V>(sums[0]) + rest;
}

// Dot products of some rows of p with at most C columns of q, all of them contiguous along k.
template <int C, class V>
void gemm_dots_of(std::int64_t k, const V* p, std::int64_t row_stride, int rows, const V* q,
                  std::int64_t column_stride, int columns, V* results) {
  constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(V));
  constexpr int R = GemmKernels<V>::kDotRows;
  typedef V Vector __attribute__((vector_size(kVectorBytes)));
  typedef V Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(V)), may_alias));
  Vector sums[R][C];  // in registers: with loops that are not unrolled it would be in memory
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) sums[i][j] = Vector{};
  }
  const V *a[R], *b[C];  // what is left over repeats the last row or column
  for (int i = 0; i < R; ++i) a[i] = p + (i < rows ? i : rows - 1) * row_stride;
  for (int j = 0; j < C; ++j) b[j] = q + (j < columns ? j : columns - 1) * column_stride;
  std::int64_t x = 0;
  for (; x + kLanes <= k; x += kLanes) {
    Vector y[C];
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) y[j] = *reinterpret_cast<const Unaligned*>(b[j] + x);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      Vector z = *reinterpret_cast<const Unaligned*>(a[i] + x);
#pragma GCC unroll 4
      for (int j = 0; j < C; ++j) sums[i][j] += z * y[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
      V rest = V(0);
      for (std::int64_t t = x; t < k; ++t) rest += a[i][t] * b[j][t];
      results[i * GemmKernels<V>::kDotColumns + j] = sum_of<kLanes, V>(sums[i][j]) + rest;
    }
  }
}

template <class V>
void gemm_dots(std::int64_t k, const V* p, std::int64_t row_stride, int rows, const V* q,
               std::int64_t column_stride, int columns, V* results) {
  if (rows == 1 && columns == 1) return void(results[0] = gemm_dot(k, p, q));
  constexpr int C = GemmKernels<V>::kDotColumns;
  (columns == 1 ? gemm_dots_of<1, V> : gemm_dots_of<C, V>)(k, p, row_stride, rows, q, column_stride,
                                                           columns, results);
}

template <class V, int kRows> void add_gemm_rows(GemmKernels<V>& kernels) {
  kernels.tile[kRows - 1][0] = gemm_tile<V, kRows, 1>;
  kernels.tile[kRows - 1][1] = gemm_tile<V, kRows, 2>;
  if constexpr (kRows > 1) add_gemm_rows<V, kRows - 1>(kernels);
}

template <class V> GemmKernels<V> make_gemm_kernels() {
  GemmKernels<V> kernels;
  kernels.rows = kTileRows;
  kernels.lanes = kVectorBytes / static_cast<int>(sizeof(V));
  add_gemm_rows<V, kTileRows>(kernels);
  kernels.row = gemm_row<V>;
  kernels.dots = gemm_dots<V>;
  return kernels;
}

}  // namespace

void get_gemm_kernels(GemmKernels<float>& f, GemmKernels<double>& d) {
  f = make_gemm_kernels<float>();
  d = make_gemm_kernels<double>();
}

}  // namespace rensa::host::RENSA_SET

// What one warp of the kernels of cuda_tiles.cuh, cuda_boxes.cuh and cuda_panels.cuh does: brings
// parts of the operands to shared memory, its own or its block's, and adds up a tile of c.
#pragma once

#include "rensa/backend/cuda/tensor_cores.cuh"

namespace rensa::cuda {

/// Part of an operand in shared memory: kLines rows of a, or columns of b, and kDepth of k. Lines
/// of memory, of k where kAlongK and of the operand's other side elsewhere, are padded such that
/// what a warp reads at once lies in different banks.
template <class T, int kLines, bool kAlongK> struct OperandPart {
  static constexpr bool along_k = kAlongK;
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
  static constexpr int kStep = 4 * kChunk, kDepth = kStep;  // kStep: what is added at a time
  static constexpr int kPad = kAlongK ? kChunk : kLines / 8 % 2 == 0 ? 8 : 0;
  static constexpr int kStride = (kAlongK ? kDepth : kLines) + kPad;
  static constexpr int kSize = kStride * (kAlongK ? kLines : kDepth);
  static constexpr int kEightLines = 8 * kStride;  // from a line to the eighth behind it, along k

  static __device__ __forceinline__ int offset(int line, int k) {
    return kAlongK ? line * kStride + k : k * kStride + line;
  }
  /// The line that is in place i of the `eight`-th eight which tensor cores take.
  static __device__ __forceinline__ int line(int eight, int i) { return eight * 8 + i; }

#if RENSA_HAS_TENSOR_CORES
  /// Brings the part of `x` from `line0` and `k0` on, zeros beyond `lines` and `k_end`; it is there
  /// for the warp once that has waited for its copies. kChunks: 16 bytes at a time.
  template <bool kChunks>
  static __device__ __forceinline__ void bring(T* part, const T* x, std::int64_t stride, int line0,
                                               int lines, int k0, int k_end) {
    constexpr int kWidth = kChunks ? kChunk : 1, kInner = (kAlongK ? kDepth : kLines) / kWidth;
    constexpr int kCount = kLines * kDepth / kWidth;
#pragma unroll
    for (int first = 0; first < kCount; first += 32) {
      int i = first + static_cast<int>(threadIdx.x) % 32;
      if (kCount % 32 != 0 && i >= kCount) break;
      int outer = i / kInner, inner = i % kInner * kWidth;
      int line = line0 + (kAlongK ? outer : inner), k = k0 + (kAlongK ? inner : outer);
      bool there = line < lines && k < k_end;
      const T* from = there ? x + (kAlongK ? line * stride + k : k * stride + line) : x;
      T* to = part + outer * kStride + inner;
      if constexpr (kChunks) copy_chunk(to, from, there);
      else if constexpr (sizeof(T) == 4) copy_word(to, from, there);
      else *to = there ? *from : T(0.0f);
    }
  }
#endif
};

#if RENSA_HAS_TENSOR_CORES
/// Of b's j-th eight columns, from k on: two words of each half of a step.
template <class E, class B, class T>
__device__ __forceinline__ void load_columns(unsigned (&words)[4], const T* b, int j, int k) {
  int lane = static_cast<int>(threadIdx.x % 32u);
  if constexpr (B::along_k) {
    load_matrices(words, b + B::offset(j * 8 + lane % 8, k + lane / 8 * B::kChunk));
  } else if constexpr (is_16bit<E>) {
    load_transposed(words, b + B::offset(j * 8, k + lane));
  } else {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      words[w] = __float_as_uint(b[B::offset(B::line(j, lane / 4), k + w * 4 + lane % 4)]);
    }
  }
}
/// Of a's i-th sixteen rows, from k on, for half a step.
template <class E, class A, class T>
__device__ __forceinline__ void load_rows(unsigned (&words)[4], const T* a, int i, int k) {
  int lane = static_cast<int>(threadIdx.x % 32u);
  if constexpr (A::along_k) {
    load_matrices(words, a + A::offset(i * 16 + lane % 16, k + lane / 16 * A::kChunk));
  } else if constexpr (is_16bit<E>) {
    load_transposed(words, a + A::offset(i * 16 + lane / 8 % 2 * 8, k + lane / 16 * 8 + lane % 8));
  } else {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      int line = A::line(2 * i + w % 2, lane / 4);
      words[w] = __float_as_uint(a[A::offset(line, k + w / 2 * 4 + lane % 4)]);
    }
  }
}

#endif

/// A warp's sums of a tile of kRows x kColumns. E is what is multiplied: float, or what tensor
/// cores take.
template <class E, int kRows, int kColumns, class A, class B> struct TileSums {
  static constexpr int kStride = kColumns + 8;  // of a row of sums in shared memory
  static constexpr int kTall = kRows / 16, kWide = kColumns / 8;
  static_assert(kRows % 16 == 0 && kColumns % 8 == 0);
  float sum[kTall][kWide][4] = {};

#if RENSA_HAS_TENSOR_CORES
  using T = Stored<E>;

  /// Of parts of the operands.
  __device__ __forceinline__ void add(const T* a, const T* b) {
#pragma unroll 1
    for (int k = 0; k < A::kDepth; k += A::kStep) add_step(a, b, k);
  }
#endif

  __device__ __forceinline__ void store(float* to) const {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kTall; ++i) {
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = A::line(2 * i + half, lane / 4), column = B::line(j, lane % 4 * 2);
          Pack<float, 2> pair{{sum[i][j][2 * half], sum[i][j][2 * half + 1]}};
          *reinterpret_cast<Pack<float, 2>*>(to + row * kStride + column) = pair;
        }
      }
    }
  }

#if RENSA_HAS_TENSOR_CORES
 private:
  __device__ __forceinline__ void add_step(const T* a, const T* b, int k) {
    unsigned words[4];
    OperandWords<E> columns[kWide];
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      load_columns<E, B>(words, b, j, k);
      columns[j].set(words);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kTall; ++i) {
        load_rows<E, A>(words, a, i, k + half * (A::kStep / 2));
        OperandWords<E> rows;
        rows.set(words);
#pragma unroll
        for (int j = 0; j < kWide; ++j) multiply<E, 0>(sum[i][j], rows, columns[j], half);
      }
    }
  }
#endif
};

/// Of floats as two TF32 numbers. Tensor cores cut off what a sum gains, rather than round it, so
/// they add up no more than a step, and float32 additions the steps.
template <int kRows, int kColumns, class A, class B>
struct TileSums<SplitFloat, kRows, kColumns, A, B> : TileSums<Tf32, kRows, kColumns, A, B> {
#if RENSA_HAS_TENSOR_CORES
  using Base = TileSums<Tf32, kRows, kColumns, A, B>;
  using Base::kTall, Base::kWide, Base::sum;
  static_assert(A::kDepth == 2 * A::kStep);

  /// Of parts of the operands.
  __device__ __forceinline__ void add(const float* a, const float* b) {
    Words first, second;
    load(first, a, b, 0);
    load(second, a, b, A::kStep);
    add(first);
    add(second);
  }

 private:
  /// What a step needs of a and b.
  struct Words {
    unsigned rows[2][kTall][4], columns[kWide][4];
  };
  static __device__ __forceinline__ void load(Words& words, const float* a, const float* b, int k) {
#pragma unroll
    for (int j = 0; j < kWide; ++j) load_columns<SplitFloat, B>(words.columns[j], b, j, k);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kTall; ++i) {
        load_rows<SplitFloat, A>(words.rows[half][i], a, i, k + half * (A::kStep / 2));
      }
    }
  }
  __device__ __forceinline__ void add(const Words& words) {
    OperandWords<SplitFloat> columns[kWide];
#pragma unroll
    for (int j = 0; j < kWide; ++j) columns[j].set(words.columns[j]);
    float part[kTall][kWide][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      OperandWords<SplitFloat> rows[kTall];
#pragma unroll
      for (int i = 0; i < kTall; ++i) rows[i].set(words.rows[half][i]);
      for_each_product<SplitFloat>([&]<int N>() {
#pragma unroll
        for (int i = 0; i < kTall; ++i) {
#pragma unroll
          for (int j = 0; j < kWide; ++j) {
            multiply<SplitFloat, N>(part[i][j], rows[i], columns[j], half);
          }
        }
      });
    }
#pragma unroll
    for (int i = 0; i < kTall; ++i) {
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[i][j][e] += part[i][j][e];
      }
    }
  }
#endif
};

/// How a warp's lanes are kRows x (32 / kRows). Lanes whose numbers differ by 1 are in one row,
/// those whose numbers differ by 2 in one column: where all of 16 lanes read the same as one
/// neighbour, their reads of 16 bytes take one turn of shared memory, and otherwise two (seen on
/// Hopper).
template <int kRows> struct Lanes {
  static_assert(kRows == 4 || kRows == 8);
  static __device__ __forceinline__ int row() {
    int lane = static_cast<int>(threadIdx.x % 32u);
    return (lane >> 1 & 1) | (kRows == 4 ? lane >> 4 : lane >> 3) << 1;
  }
  static __device__ __forceinline__ int column() {
    int lane = static_cast<int>(threadIdx.x % 32u);
    return (lane & 1) | (lane >> 2 & (kRows == 4 ? 3 : 1)) << 1;
  }
};

/// Of floats, by fused multiply-adds: of a warp's 8 x 4 lanes each has kRows / 8 rows and
/// kColumns / 4 columns.
template <int kRows, int kColumns, class A, class B> struct TileSums<float, kRows, kColumns, A, B> {
  static constexpr int kTall = kRows / 8, kWide = kColumns / 4;
  static constexpr int kStride = kColumns + (B::along_k ? 4 : 16);
  static_assert(kRows % 8 == 0 && kColumns % 16 == 0);
  float sum[kTall][kWide] = {};

  // Lines that lie together are one lane's where they are read in one piece, and elsewhere every
  // 8th or 4th is. Columns come in fours.
  static __device__ __forceinline__ int row_of(int i) {
    int lane_row = Lanes<8>::row();
    return A::along_k ? lane_row + 8 * i : lane_row * kTall + i;
  }
  static __device__ __forceinline__ int column_of(int j) {
    int lane_column = Lanes<8>::column();
    return B::along_k ? lane_column + 4 * j : j / 4 * 16 + lane_column * 4 + j % 4;
  }

  __device__ __forceinline__ void add(const float* a, const float* b) {
#pragma unroll 1  // the code of more would come too late to the processors
    for (int k = 0; k < A::kDepth; k += 8) {
      add_four(a, b, k);
      add_four(a, b, k + 4);
    }
  }

  __device__ __forceinline__ void store(float* to) const {
#pragma unroll
    for (int i = 0; i < kTall; ++i) {
      float* row = to + row_of(i) * kStride;
#pragma unroll
      for (int j = 0; j < kWide; j += 4) {
        if constexpr (B::along_k) {
#pragma unroll
          for (int e = 0; e < 4; ++e) row[column_of(j + e)] = sum[i][j + e];
        } else {
          Pack<float, 4> four{{sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]}};
          *reinterpret_cast<Pack<float, 4>*>(row + column_of(j)) = four;
        }
      }
    }
  }

 private:
  /// Four of k.
  __device__ __forceinline__ void add_four(const float* a, const float* b, int k) {
    float x[4][kTall], y[4][kWide];
    if constexpr (A::along_k) {
      const float* rows = a + A::offset(row_of(0), k);
#pragma unroll
      for (int i = 0; i < kTall; ++i) spread(x, i, rows + i * A::kEightLines);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) take<kTall>(x[e], a + A::offset(row_of(0), k + e));
    }
    if constexpr (B::along_k) {
      const float* columns[] = {b + B::offset(column_of(0), k), b + B::offset(column_of(1), k)};
#pragma unroll
      for (int j = 0; j < kWide; ++j) spread(y, j, columns[j % 2] + j / 2 * B::kEightLines);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int j = 0; j < kWide; j += 4) take<4>(y[e] + j, b + B::offset(column_of(j), k + e));
      }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
#pragma unroll
        for (int step = 0; step < kTall; ++step) {
          int i = j % 2 ? kTall - 1 - step : step;
          sum[i][j] = fmaf(x[e][i], y[e][j], sum[i][j]);
        }
      }
    }
  }
  /// The W values at `from`, which lie at a multiple of their size.
  template <int W> static __device__ __forceinline__ void take(float* values, const float* from) {
    auto pack = *reinterpret_cast<const Pack<float, W>*>(from);
#pragma unroll
    for (int i = 0; i < W; ++i) values[i] = pack.value[i];
  }
  /// Four values along k as line `line` of four k's.
  template <int N>
  static __device__ __forceinline__ void spread(float (&values)[4][N], int line,
                                                const float* from) {
    auto pack = *reinterpret_cast<const Pack<float, 4>*>(from);
#pragma unroll
    for (int e = 0; e < 4; ++e) values[e][line] = pack.value[e];
  }
};

}  // namespace rensa::cuda

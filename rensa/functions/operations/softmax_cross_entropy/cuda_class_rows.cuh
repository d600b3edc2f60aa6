// What the kernels share that sum over the rows of a classification.
#pragma once

#include "rensa/backend/cuda/flat_view.cuh"
#include "rensa/device/operation.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.h"

namespace rensa::cuda {

inline constexpr int kMostThreads = 1024;  // of a block

// What a block knows of its rows: two sums.
struct Sums {
  double value;  // the loss, or rows that are right
  double count;  // rows counted
};
__device__ __forceinline__ Sums operator+(Sums a, Sums b) {
  return {a.value + b.value, a.count + b.count};
}
struct AddSums {
  static __device__ __forceinline__ Sums identity() { return {0, 0}; }
  static __device__ __forceinline__ Sums combine(Sums a, Sums b) { return a + b; }
};

/// The rows of (rows, classes) as the blocks share them out.
struct ClassRows {
  std::int64_t rows = 0, classes = 0;
  int group = 1;  // threads of a row
  void* workspace = nullptr;
  unsigned* semaphores = nullptr;

  ClassRows() = default;
  ClassRows(const ArrayView& view, const ClassRowsPlan& plan, const LaunchContext& context)
      : rows(view.shape[0]),
        classes(view.shape[1]),
        group(plan.group),
        workspace(context.workspace),
        semaphores(context.semaphores) {}

  __device__ __forceinline__ int lane() const { return threadIdx.x & (group - 1); }
  // Calls f(row, whether it is there), the same number of times in a whole block.
  template <class F> __device__ __forceinline__ void for_each(const F& f) const {
    std::int64_t rows_of_block = blockDim.x / group;
    for (std::int64_t first = blockIdx.x * rows_of_block; first < rows;
         first += gridDim.x * rows_of_block) {
      std::int64_t row = first + threadIdx.x / group;
      f(row, row < rows);
    }
  }
};

// --- long rows ---

constexpr int kPacksAtOnce = 4;  // loads of 16 bytes that a thread has under way

/// Where the vectors of a row of T lie. Rows of any length follow each other, so that few begin
/// where a vector does: some elements come before the first vector, and some after the last.
/// Where vectors begin follows from the place in the array alone, not on its address: neither do
/// results.
template <class T> struct RowVectors {
  static constexpr int W = 16 / static_cast<int>(sizeof(T));
  std::int64_t classes;
  unsigned head, count;  // elements before the first vector; vectors, of 64 GB at most
  __device__ __forceinline__ RowVectors(std::int64_t row, std::int64_t n) : classes(n) {
    std::int64_t to_vector = -(row * n) & (W - 1);
    head = static_cast<unsigned>(to_vector < n ? to_vector : n);
    count = static_cast<unsigned>((n - head) / W);
  }
  /// The column outside all vectors that thread `lane` of 32 or more takes, or -1.
  __device__ __forceinline__ std::int64_t single(unsigned lane) const {
    std::int64_t at = lane < head ? lane : lane + count * static_cast<std::int64_t>(W);
    return at < classes ? at : -1;
  }
  /// The vectors k, k + step, ... as far as they are there. `aligned`: those of the array are.
  __device__ __forceinline__ void load(const T* row, unsigned k, unsigned step, bool aligned,
                                       Vector<T> (&vectors)[kPacksAtOnce]) const {
    const auto* from = reinterpret_cast<const Pack<T, W>*>(row + head) + k;
    if (aligned) {
#pragma unroll
      for (unsigned c = 0; c < kPacksAtOnce; ++c) {
        if (k + c * step < count) vectors[c].load(from[c * step].value);
      }
    } else {
#pragma unroll
      for (unsigned c = 0; c < kPacksAtOnce; ++c) {
        if (k + c * step >= count) break;
        vectors[c].set(load_pack<T, W>(from[c * step].value, W, false, T()));
      }
    }
#pragma unroll
    for (unsigned c = 0; c < kPacksAtOnce; ++c) vectors[c].keep();
  }
};

// --- sums of all rows ---

// The sum over all blocks. True in the one thread that has it.
__device__ __forceinline__ bool grid_sum(Sums& sums, const ClassRows& rows) {
  sums = join_block<AddSums, kMostThreads>(sums);
  if (gridDim.x == 1) return threadIdx.x == 0;
  Sums* partials = static_cast<Sums*>(rows.workspace);
  if (threadIdx.x == 0) partials[blockIdx.x] = sums;
  if (!is_last_block(rows.semaphores, gridDim.x)) return false;
  sums = {0, 0};
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sums = sums + partials[i];
  sums = join_block<AddSums, kMostThreads>(sums);
  return threadIdx.x == 0;
}

/// Calls f with an element of x's dtype, which is refused where it is no floating one.
template <class F> void visit_class_rows(const Operation& op, const ArrayView& x, const F& f) {
  switch (x.dtype) {
    case Dtype::float16: return f(half_t());
    case Dtype::bfloat16: return f(bfloat16_t());
    case Dtype::float32: return f(float());
    case Dtype::float64: return f(double());
    default: refuse_class_rows(op, x);
  }
}

}  // namespace rensa::cuda

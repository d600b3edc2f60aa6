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

}  // namespace rensa::cuda

// Reductions of two contiguous inputs to one result.
#pragma once

#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa::cuda {

/// A loader's part that reads both inputs; what derives from it says what their value is.
template <class T, class PairArgs = ReducePairArgs, int kCount = 16 / sizeof(T)> struct PairLoader {
  using Args = PairArgs;
  static constexpr int kWidth = 16 / sizeof(T), kValues = kCount;
  struct Data {
    Pack<T, kWidth> a, b;
  };
  template <bool kFull>
  static __device__ __forceinline__ Data load(const PairArgs& args, std::int64_t offset,
                                              std::int64_t left) {
    return {load_vector<T, kFull>(args.in + offset, left, args.vector),
            load_vector<T, kFull>(args.second + offset, left, args.vector)};
  }
};

/// Reduces `count` pairs of `size` bytes to the element at `out`. Static, as launch_kernel is.
template <class Args>
static void launch_pairs(const char* operation, const LaunchContext& context, void (*kernel)(Args),
                         const char* a, const char* b, std::int64_t count, std::int64_t size,
                         char* out, Dtype out_dtype, Args args = {}) {
  static_cast<ReduceBlocks&>(args) = plan_rows(1, count, 16 / size);
  args.in = a;
  args.second = b;
  args.out = out;
  args.out_dtype = out_dtype;
  args.vector = is_aligned(a, 16) && is_aligned(b, 16);
  args.kept.push_back(1, {0, 0});
  args.reduced.push_back(args.vectors, {16});
  args.partials = context.workspace;
  args.semaphores = context.semaphores;
  launch_kernel(operation, context, kernel, args.grid, kBlock, args);
}

}  // namespace rensa::cuda

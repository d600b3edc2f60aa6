// Reduction kernels: those that carry a mean or a count.
#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa::cuda {

namespace {

/// The mean of what DeviationsReducer sums, or its root.
template <class V, bool kRoot> struct VarianceReducer : DeviationsReducer<V> {
  using Acc = typename DeviationsReducer<V>::Acc;
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t count) {
    V variance = acc.squares / V(count);
    store_any<V>(p, dtype, kRoot ? m::sqrt(variance) : variance);
  }
};
template <class V> using Variance = VarianceReducer<V, false>;
template <class V> using StandardDeviation = VarianceReducer<V, true>;

}  // namespace

namespace reduction_rows {
const ReduceKernels deviations = kernels_beside<DeviationsReducer, ReductionRule::deviations>();
const ReduceKernels variance = kernels_beside<Variance, ReductionRule::deviations>();
const ReduceKernels standard_deviation =
    kernels_beside<StandardDeviation, ReductionRule::deviations>();
const ReduceKernels nanmean = kernels_beside<NanMeanReducer, ReductionRule::nan_mean>();
}  // namespace reduction_rows

}  // namespace rensa::cuda

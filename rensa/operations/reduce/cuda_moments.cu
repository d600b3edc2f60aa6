// Reduction kernels: those that carry a mean or a count.
#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa::cuda::reduction_rows {
const ReduceKernels deviations = kernels_beside<DeviationsReducer, ReductionRule::deviations>();
const ReduceKernels nanmean = kernels_beside<NanMeanReducer, ReductionRule::nan_mean>();
}  // namespace rensa::cuda::reduction_rows

// Reduction kernels: those of positions.
#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa::cuda {

template <class V> using ArgmaxReducer = ArgReducer<V, true>;
template <class V> using ArgminReducer = ArgReducer<V, false>;

namespace reduction_rows {
const ReduceKernels argmax = kernels_beside<ArgmaxReducer, ReductionRule::position>();
const ReduceKernels argmin = kernels_beside<ArgminReducer, ReductionRule::position>();
}  // namespace reduction_rows

}  // namespace rensa::cuda

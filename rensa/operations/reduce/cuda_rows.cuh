// The kernels of the rows of RENSA_REDUCTION_ROWS, a file of reductions.def.
#include "rensa/operations/reduce/cuda_kernels.cuh"

#include "rensa/core/begin_reduction_functors.h"
namespace rensa::red {
#include RENSA_REDUCTION_ROWS
}  // namespace rensa::red
#include "rensa/core/end_reduction_functors.h"

namespace rensa::cuda::reduction_rows {
#define RENSA_REDUCTION(name, rule, identity, map, reduce, post) \
  extern const ReduceKernels name;                               \
  const ReduceKernels name = kernels_of_row<red::name, ReductionRule::rule>();
#include RENSA_REDUCTION_ROWS
#undef RENSA_REDUCTION
}  // namespace rensa::cuda::reduction_rows

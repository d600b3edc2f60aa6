// Reduction kernels: the rows of core/reductions/sums.def.
#define RENSA_REDUCTION_ROWS "rensa/core/reductions/sums.def"
#include "rensa/operations/reduce/cuda_rows.cuh"

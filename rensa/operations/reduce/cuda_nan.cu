// Reduction kernels: the rows of core/reductions/nan.def.
#define RENSA_REDUCTION_ROWS "rensa/core/reductions/nan.def"
#include "rensa/operations/reduce/cuda_rows.cuh"

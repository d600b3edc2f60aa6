// Reduction kernels: the rows of core/reductions/order.def.
#define RENSA_REDUCTION_ROWS "rensa/core/reductions/order.def"
#include "rensa/operations/reduce/cuda_rows.cuh"

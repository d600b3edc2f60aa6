// Reduction kernels: the rows of reductions.def (argmax and argmin behind them) whose number is 1
// modulo the count of groups. The rows are spread over files so that they compile side by side.
#define RENSA_REDUCE_GROUP 1
#include "rensa/operations/reduce/cuda_kernels.cuh"

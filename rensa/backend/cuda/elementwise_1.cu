// Elementwise kernels: the rows of ops.def whose number is 1 modulo the count of groups. The rows
// are spread over files so that they compile side by side.
#define RENSA_ELEMENTWISE_GROUP 1
#include "rensa/backend/cuda/elementwise.cuh"

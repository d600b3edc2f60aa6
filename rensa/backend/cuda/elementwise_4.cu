// Elementwise kernels: the rows of ops.def whose number is 4 modulo the count of groups. The rows
// are spread over files so that they compile side by side.
#define RENSA_ELEMENTWISE_GROUP 4
#include "rensa/backend/cuda/elementwise.cuh"

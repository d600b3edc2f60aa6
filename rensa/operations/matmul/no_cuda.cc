// What products ask of a GPU, in builds without CUDA.
#include "rensa/operations/matmul/matmul.h"

namespace rensa::operations {

bool Matmul::takes_ends() const { return false; }

}  // namespace rensa::operations

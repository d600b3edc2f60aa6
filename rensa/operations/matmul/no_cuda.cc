// What products ask of a GPU, in builds without CUDA.
#include "rensa/operations/matmul/matmul.h"

namespace rensa::operations {

bool Matmul::joins_tanh() const { return false; }
bool Matmul::joins_gate() const { return false; }

}  // namespace rensa::operations

// What products ask of a GPU, in builds without CUDA.
#include "rensa/operations/matmul/matmul.h"

namespace rensa::operations {

bool Matmul::takes_ends() const { return false; }
bool Matmul::has_rows() const { return false; }
bool Matmul::takes_update() const { return false; }
bool Matmul::adds_in_order() const { return false; }

}  // namespace rensa::operations

// The CUDA side of softmax in a build without CUDA.
#include "rensa/device/softmax_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

void Softmax::run_cuda(const cuda::LaunchContext&) {
  throw NotImplementedError(std::string(name()) + ": this build of Rensa has no CUDA");
}

}  // namespace rensa

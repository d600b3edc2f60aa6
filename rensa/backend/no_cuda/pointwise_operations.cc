// The CUDA side of pointwise rows in a build without CUDA.
#include "rensa/device/pointwise_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

void Pointwise::run_cuda(const cuda::LaunchContext&) {
  throw NotImplementedError(std::string(name()) + ": this build of Rensa has no CUDA");
}

}  // namespace rensa

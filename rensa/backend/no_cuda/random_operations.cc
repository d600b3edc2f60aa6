// The CUDA side of random variates in a build without CUDA.
#include "rensa/device/random_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

void Variates::run_cuda(const cuda::LaunchContext&) {
  throw NotImplementedError(std::string(name()) + ": this build of Rensa has no CUDA");
}

}  // namespace rensa

// The CUDA side of copies of several arrays in a build without CUDA.
#include "rensa/device/copy_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

void CopyParts::run_cuda(const cuda::LaunchContext&) {
  throw NotImplementedError(std::string(name()) + ": this build of Rensa has no CUDA");
}

}  // namespace rensa

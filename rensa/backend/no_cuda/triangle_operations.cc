// The CUDA side of the operations on triangles in a build without CUDA.
#include "rensa/device/triangle_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + ": this build of Rensa has no CUDA");
}
}  // namespace

void Triangle::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void TriangleIndices::run_cuda(const cuda::LaunchContext&) { absent(*this); }

}  // namespace rensa

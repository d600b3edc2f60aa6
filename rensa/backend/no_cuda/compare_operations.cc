// The CUDA side of the comparisons with a tolerance in a build without CUDA.
#include "rensa/device/compare_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + ": this build of Rensa has no CUDA");
}
}  // namespace

void IsClose::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void AllClose::run_cuda(const cuda::LaunchContext&) { absent(*this); }
std::size_t AllClose::workspace_bytes() const { return 0; }

}  // namespace rensa

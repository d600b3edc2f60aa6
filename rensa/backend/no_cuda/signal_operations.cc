// The CUDA side of the operations on sequences in a build without CUDA.
#include "rensa/device/signal_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + ": this build of Rensa has no CUDA");
}
}  // namespace

void Correlate::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Interpolate::run_cuda(const cuda::LaunchContext&) { absent(*this); }

}  // namespace rensa

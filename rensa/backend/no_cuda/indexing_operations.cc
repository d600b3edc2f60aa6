// The CUDA side of indexing in a build without CUDA.
#include "rensa/device/indexing_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + ": this build of Rensa has no CUDA");
}
}  // namespace

void Gather::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Scatter::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void CountTrue::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void FindTrue::run_cuda(const cuda::LaunchContext&) { absent(*this); }

std::size_t Scatter::workspace_bytes() const { return 0; }
std::size_t CountTrue::workspace_bytes() const { return 0; }

}  // namespace rensa

// The CUDA side of sorting, searching, scans and histograms in a build without CUDA.
#include "rensa/device/sort_operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + ": this build of Rensa has no CUDA");
}
}  // namespace

void Sort::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void SearchSorted::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Scan::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void MarkPresent::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Histogram::run_cuda(const cuda::LaunchContext&) { absent(*this); }

std::size_t Sort::workspace_bytes() const { return 0; }
std::size_t Scan::workspace_bytes() const { return 0; }

}  // namespace rensa

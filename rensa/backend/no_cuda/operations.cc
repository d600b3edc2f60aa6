// The CUDA side of every operation in a build without CUDA.
#include "rensa/device/operations.h"

#include <string>

#include "rensa/core/error.h"

namespace rensa {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + ": this build of Rensa has no CUDA");
}
}  // namespace

void Elementwise::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Reduce::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Matmul::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Arange::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Random::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Dropout::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void SoftmaxCrossEntropy::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void SoftmaxCrossEntropyGrad::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Accuracy::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void ReluBiasGrad::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void UpdateParameters::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Transfer::run_cuda(const cuda::LaunchContext&) { absent(*this); }

std::size_t Reduce::workspace_bytes() const { return 0; }
std::size_t Matmul::workspace_bytes() const { return 0; }
std::size_t SoftmaxCrossEntropy::workspace_bytes() const { return 0; }
std::size_t Accuracy::workspace_bytes() const { return 0; }
std::size_t ReluBiasGrad::workspace_bytes() const { return 0; }

}  // namespace rensa

// The CUDA side of linear algebra and FFT in a build without CUDA.
#include "rensa/device/linalg_operations.h"

#include <string>

#include "rensa/core/error.h"
#include "rensa/device/fft_operations.h"

namespace rensa {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + ": this build of Rensa has no CUDA");
}
}  // namespace

void CholeskyFactor::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void LuSolve::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void QrFactor::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void QrForm::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Eigh::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Svd::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Eig::run_cuda(const cuda::LaunchContext&) { absent(*this); }
void Fft::run_cuda(const cuda::LaunchContext&) { absent(*this); }

std::size_t CholeskyFactor::workspace_bytes() const { return 0; }
std::size_t LuSolve::workspace_bytes() const { return 0; }
std::size_t QrFactor::workspace_bytes() const { return 0; }
std::size_t QrForm::workspace_bytes() const { return 0; }
std::size_t Eigh::workspace_bytes() const { return 0; }
std::size_t Svd::workspace_bytes() const { return 0; }
std::size_t Eig::workspace_bytes() const { return 0; }
std::size_t Fft::workspace_bytes() const { return 0; }

}  // namespace rensa

// NVIDIA's libraries by their names and versions.
#include "rensa/backend/cuda/library.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <exception>
#include <string_view>

namespace rensa::cuda {

namespace {

/// `base`.so.N of the toolkit this was compiled with, then of the others that would do.
std::vector<const char*> of_toolkit(const char* newer, const char* older) {
  if (CUDART_VERSION >= 13000) return {newer, older};
  return {older, newer};
}

}  // namespace

const LibrarySource& cublaslt_source() {
  static const LibrarySource source{
      "cuBLASLt", of_toolkit("libcublasLt.so.13", "libcublasLt.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcublas-13-0, or pip's nvidia-cublas) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cublas_source() {
  static const LibrarySource source{
      "cuBLAS", of_toolkit("libcublas.so.13", "libcublas.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcublas-13-0, or pip's nvidia-cublas) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cusolver_source() {
  static const LibrarySource source{
      "cuSOLVER", of_toolkit("libcusolver.so.12", "libcusolver.so.11"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcusolver-13-0, or pip's nvidia-cusolver) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cufft_source() {
  static const LibrarySource source{
      "cuFFT", of_toolkit("libcufft.so.12", "libcufft.so.11"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcufft-13-0, or pip's nvidia-cufft) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& nccl_source() {
  static const LibrarySource source{
      "NCCL",
      {"libnccl.so.2"},
      RENSA_NCCL_ROOT,
      "install it (the package libnccl2, or pip's nvidia-nccl-cu13) and point RENSA_LIBRARY_PATH "
      "at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& nvrtc_source() {
  static const LibrarySource source{
      "NVRTC", of_toolkit("libnvrtc.so.13", "libnvrtc.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package cuda-nvrtc-13-0, or pip's nvidia-cuda-nvrtc) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cudnn_source() {
  static const LibrarySource source{
      "cuDNN",
      {"libcudnn.so.9"},
      RENSA_CUDNN_ROOT,
      "install it (the package libcudnn9-cuda-13, or pip's nvidia-cudnn-cu13) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cupti_source() {
  static const LibrarySource source{
      "CUPTI", of_toolkit("libcupti.so.13", "libcupti.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package cuda-cupti-13-0, or pip's nvidia-cuda-cupti) and point "
      "RENSA_LIBRARY_PATH at its folder (extras/CUPTI/lib64 of a toolkit) if it lies elsewhere"};
  return source;
}

namespace {

/// What the library says that its version is; empty where it does not.
std::string version_of(const Library& library, std::string_view name) {
  int major = 0, minor = 0, patch = 0;
  if (name == "NVRTC") {
    int (*get)(int*, int*) = nullptr;
    library.bind_if_there("nvrtcVersion", get);
    return get && get(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : "";
  }
  if (name == "CUPTI") return "";  // without a driver, asking it overflows the stack
  if (name == "NCCL") {
    int version = 0, (*get)(int*) = nullptr;
    library.bind_if_there("ncclGetVersion", get);
    if (!get || get(&version) != 0) return "";
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  // The others have a function of one kind; its first argument says which part is wanted.
  std::string symbol = name == "cuBLASLt"   ? "cublasLtGetProperty"
                       : name == "cuBLAS"   ? "cublasGetProperty"
                       : name == "cuSOLVER" ? "cusolverGetProperty"
                       : name == "cuFFT"    ? "cufftGetProperty"
                                            : "cudnnGetProperty";
  int (*get)(int, int*) = nullptr;
  library.bind_if_there(symbol.c_str(), get);
  bool known = get && get(0, &major) == 0 && get(1, &minor) == 0 && get(2, &patch) == 0;
  return known ? fmt::format("{}.{}.{}", major, minor, patch) : "";
}

}  // namespace

std::string describe_library(const LibrarySource& source) {
  try {
    Library library(source);
    std::string version = version_of(library, source.name);
    return fmt::format("{}: {}{}{}", source.name, version, version.empty() ? "" : ", ",
                       library.path());
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace rensa::cuda

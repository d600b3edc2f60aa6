// Which of NVIDIA's libraries there are, and where this build looks for them.
#pragma once

#include <string>

#include "rensa/device/library.h"

namespace rensa::cuda {

const LibrarySource& cublaslt_source();
const LibrarySource& cublas_source();
const LibrarySource& cusolver_source();
const LibrarySource& cufft_source();
const LibrarySource& nccl_source();
const LibrarySource& nvrtc_source();
const LibrarySource& cudnn_source();
const LibrarySource& cupti_source();

/// One line for cuda::diagnose(): the library's version and where it was found, or that it was not.
/// Never throws.
std::string describe_library(const LibrarySource& source);

}  // namespace rensa::cuda

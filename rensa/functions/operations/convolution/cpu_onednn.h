// Convolutions on the CPU by oneDNN, where the build has it.
#pragma once

#include <string>

#include "rensa/functions/operations/convolution/convolution.h"

namespace rensa::host {

/// Computes `op` by oneDNN and returns true, or leaves it: what oneDNN is not there for (float64
/// and float16, operands that are neither dense nor have their channels last, kernels of one
/// place), what it has no good kernel of on this machine, few channels and few large images. The
/// bits follow from the shapes and the machine alone, not from the number of threads.
bool convolve_by_onednn(const operations::Convolution& op);
/// "3.1.1", of the library that the program runs with.
std::string onednn_version();

}  // namespace rensa::host

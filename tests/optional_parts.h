// What a build may leave out on the CPU: factorizations of matrices (RENSA_BLAS) and Fourier
// transforms (RENSA_FFT).
#pragma once

#include <string_view>
#include <vector>

#include "tests/testing.h"

namespace rensa::testing {

bool has_lapack();
bool has_fft();

/// The test_devices() that can factor, and that can transform.
std::vector<Device> linalg_devices();
std::vector<Device> fft_devices();

/// Whether `message` says that a routine is not in this build, which is so.
bool left_out(std::string_view message);

}  // namespace rensa::testing

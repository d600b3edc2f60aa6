// What a build may leave out on the CPU: factorizations of matrices (RENSA_BLAS).
#pragma once

#include <string_view>
#include <vector>

#include "tests/testing.h"

namespace rensa::testing {

bool has_lapack();

/// The test_devices() that can factor.
std::vector<Device> linalg_devices();

/// Whether `message` says that a routine is not in this build, which is so.
bool left_out(std::string_view message);

}  // namespace rensa::testing

// The innermost loops of updates on the CPU, over contiguous values of one type.
#pragma once

#include <cstdint>

#include "rensa/backend/cpu/kernels.h"

namespace rensa::host {

/// A rule's statements over n elements of the parameter, the gradient and the states.
using UpdateKernel = void (*)(std::int64_t n, void* parameter, void* gradient, void* const* states,
                              const double* hyperparameters);
/// The sum of n squares.
using SquaresKernel = double (*)(std::int64_t n, const void* values);

inline constexpr int kNumUpdateRules = 0
#define RENSA_UPDATE_RULE(...) +1
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
    ;

/// For values of one type.
struct UpdateKernels {
  UpdateKernel rules[kNumUpdateRules];
  SquaresKernel squares;
};

/// For the best instruction set of this machine; f32 or f64.
const UpdateKernels& update_kernels(ComputeType type);

RENSA_EACH_SET(void get_update_kernels(UpdateKernels& f, UpdateKernels& d);)

}  // namespace rensa::host

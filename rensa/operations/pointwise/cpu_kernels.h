// The inner loops of pointwise.def's rows, over contiguous values of one type V, for each
// instruction set.
#pragma once

#include "rensa/backend/cpu/kernels.h"
#include "rensa/operations/pointwise/pointwise_rows.h"

namespace rensa::host {

/// out[k][i] = row(in[0][i], in[1][i], ...); an output may be an input.
using PointwiseKernel = void (*)(std::int64_t n, const void* const* in, void* const* out);

/// By row and value type; null where a row does not take the type.
struct PointwiseTable {
  PointwiseKernel kernel[pointwise::kNumRows][kNumComputeTypes];
};
/// The kernels for `set`, which the machine has to have.
PointwiseTable make_pointwise_table(InstructionSet set);
/// The kernels for best_instruction_set().
const PointwiseTable& pointwise_kernels();

// Those of an instruction set are put above those that are there.
RENSA_EACH_SET(void add_pointwise(PointwiseTable&);)

}  // namespace rensa::host

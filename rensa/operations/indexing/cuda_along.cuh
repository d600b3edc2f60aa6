// Gathers and sums on a GPU where each index moves one element along a line.
#pragma once

#include "rensa/operations/indexing/cuda_list.cuh"

namespace rensa::cuda {

/// Whether gather_lines does it: single elements by one array of 32- or 64-bit integers, which
/// follow one another as the results do.
bool gathers_lines(const operations::IndexPlan& plan);
void gather_lines(const char* operation, const LaunchContext& context,
                  const operations::IndexPlan& plan);

/// Whether add_lines does it: single floating elements, each of which stays on its line, and many
/// lines of which a block holds all that it has to know.
bool adds_lines(const operations::IndexPlan& plan);
/// The sums of combine_part, bit for bit, without a sort of the device.
void add_lines(const char* operation, const LaunchContext& context,
               const operations::IndexPlan& plan);

}  // namespace rensa::cuda

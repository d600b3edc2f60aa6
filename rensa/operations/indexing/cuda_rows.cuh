// Gathers on a GPU of rows that lie together, by one array of indices.
#pragma once

#include "rensa/operations/indexing/cuda_list.cuh"

namespace rensa::cuda {

/// Whether gather_rows does it: rows that are multiples of 4 bytes, as an embedding's are, by one
/// array of 32- or 64-bit integers.
bool gathers_rows(const operations::IndexPlan& plan);
void gather_rows(const char* operation, const LaunchContext& context,
                 const operations::IndexPlan& plan);

}  // namespace rensa::cuda

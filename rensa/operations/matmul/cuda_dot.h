// Sums of products of two contiguous vectors, for Matmul.
#pragma once

#include "rensa/operations/matmul/blas_layout.h"
#include "rensa/operations/matmul/matmul.h"

namespace rensa::cuda {

/// Whether `op` is one product of two long contiguous vectors and nothing else: work of memory,
/// which is done as a reduction. Addresses do not matter.
bool is_long_dot(const operations::Matmul& op, const MatmulLayout& layout);
std::size_t long_dot_workspace_bytes(const operations::Matmul& op, const MatmulLayout& layout);
void run_long_dot(const operations::Matmul& op, const MatmulLayout& layout,
                  const LaunchContext& context);

}  // namespace rensa::cuda

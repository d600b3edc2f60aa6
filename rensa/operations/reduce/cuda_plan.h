// How a reduction is spread over a GPU.
#pragma once

#include "rensa/operations/reduce/reduce.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::cuda {

/// A reduction taken apart.
struct ReducePlan {
  ArrayView kept_in, kept_out, reduced;  // axes in order and merged, at least one each
  std::int64_t count = 0;                // elements that one output is reduced from
  VectorType type = VectorType::none;    // none: the kernel for any dtype, of one-element vectors
  int width = 1;                         // elements in a vector
  bool by_columns = false;
  ReduceBlocks blocks;
  std::size_t workspace_bytes = 0;
};
/// `out` must not be empty.
ReducePlan plan_reduce(const operations::Reduce& op);

}  // namespace rensa::cuda

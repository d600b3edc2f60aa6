// How the rows of a classification are spread over a GPU.
#pragma once

#include "rensa/device/operation.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::cuda {

/// Rows of more classes than this are long: their kernels read vectors, a warp or a block to a row.
inline constexpr std::int64_t kShortRow = 128;

/// One for each class, up to 32.
int threads_of_short_row(std::int64_t classes);

/// How the rows of a classification are spread over blocks: `group` threads per row (a power of two
/// up to 32, or all of a block). Of short rows a thread has one class, of many with up to 32
/// classes two, and of more up to four.
struct ClassRowsPlan {
  int group = 1;
  int block = kBlock;
  std::int64_t blocks = 1;
};
ClassRowsPlan plan_class_rows(std::int64_t rows, std::int64_t classes);
/// Throws DtypeError: `view`, of rows of classes, is of none of the floating dtypes.
[[noreturn]] void refuse_class_rows(const Operation& op, const ArrayView& view);
/// Throws ValueError: `view` is no few short rows, of which alone the gradient needs no shift.
[[noreturn]] void refuse_large_rows(const Operation& op, const ArrayView& view);

/// Scratch of the sums of all blocks.
std::size_t class_rows_bytes(std::int64_t rows, std::int64_t classes);

}  // namespace rensa::cuda

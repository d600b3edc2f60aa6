// How the rows of a classification are spread over a GPU.
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.h"

#include <algorithm>
#include <string>

#include "rensa/core/error.h"

namespace rensa::cuda {

int threads_of_short_row(std::int64_t classes) { return std::min(32, power_of_two_above(classes)); }

ClassRowsPlan plan_class_rows(std::int64_t rows, std::int64_t classes) {
  // The last block sums one partial result per block; few enough blocks that this stays short.
  constexpr std::int64_t kMostBlocks = 8 * kMultiprocessors;
  ClassRowsPlan plan;
  if (classes > kShortRow) {
    constexpr std::int64_t kResident = 4 * kMultiprocessors;  // blocks that run at once
    bool warps = classes <= 1024 && rows > kResident;
    plan.group = warps ? 32 : kBlock;
    plan.blocks = std::clamp<std::int64_t>(ceil_div(rows, plan.block / plan.group), 1, kResident);
    return plan;
  }
  plan.group = threads_of_short_row(classes);
  constexpr std::int64_t kOneBlock = 1024;  // needs no meeting of blocks
  if (rows * plan.group > kOneBlock && classes <= plan.group && plan.group > 1) plan.group /= 2;
  std::int64_t threads = rows * plan.group;
  if (threads <= kOneBlock) {
    plan.block = static_cast<int>(std::clamp<std::int64_t>(round_up(threads, 32), 32, kOneBlock));
    return plan;
  }
  // Small blocks find room beside those of large products.
  constexpr int kSmallBlock = 128;
  if (threads <= kMostBlocks * kSmallBlock) plan.block = kSmallBlock;
  plan.blocks = std::min(ceil_div(threads, plan.block), kMostBlocks);
  return plan;
}

void refuse_class_rows(const Operation& op, const ArrayView& view) {
  throw DtypeError(std::string(op.name()) + ": " + view.describe() +
                   " is not taken, only float16, bfloat16, float32 and float64");
}

void refuse_large_rows(const Operation& op, const ArrayView& view) {
  throw ValueError(std::string(op.name()) + ": " + view.describe() +
                   " has too many rows or classes to do without the loss's shift and count");
}

std::size_t class_rows_bytes(std::int64_t rows, std::int64_t classes) {
  return static_cast<std::size_t>(plan_class_rows(rows, classes).blocks * kPartialBytes);
}

}  // namespace rensa::cuda

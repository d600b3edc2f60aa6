// How reductions are cut into pieces.
#include "rensa/portable/launch_plan.h"

#include <algorithm>
#include <bit>

#include "rensa/core/axes.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

bool reduces_columns(const ArrayView& kept, const ArrayView& reduced) {
  if (kept.size() <= 1) return false;
  return reduced.size() <= 1 || densest_stride(kept) < densest_stride(reduced);
}

int power_of_two_above(std::int64_t n) {
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(n, 1, kBlock))));
}

VectorType vector_type(Dtype d) {
  switch (d) {
    case Dtype::float32: return VectorType::f32;
    case Dtype::float16: return VectorType::f16;
    case Dtype::bfloat16: return VectorType::bf16;
    case Dtype::float64: return VectorType::f64;
    case Dtype::int32: return VectorType::i32;
    case Dtype::int64: return VectorType::i64;
    case Dtype::bool_: return VectorType::b8;
    default: return VectorType::none;
  }
}

std::size_t flat_workspace_bytes(std::int64_t nbytes) {
  ReduceBlocks plan = plan_rows(1, nbytes, 16);
  return static_cast<std::size_t>(plan.slices > 1 ? plan.slices * kPartialBytes : 0);
}

ReduceBlocks plan_rows(std::int64_t outputs, std::int64_t count, std::int64_t width) {
  ReduceBlocks plan;
  std::int64_t vectors = ceil_div(count, width);
  plan.outputs = outputs;
  plan.count = count;
  plan.vectors = plan.slice_vectors = vectors;
  // Few outputs get many threads, many outputs threads with some vectors each: with more of them
  // the less there is to join, as long as warps stay together and the GPU is full.
  constexpr std::int64_t kThreads = kMultiprocessors * 2048;
  std::int64_t each = outputs <= 1024 ? 1 : 4;
  auto fills = [&](std::int64_t threads) { return threads >= 32 && outputs * threads >= kThreads; };
  while (each > 1 && each < 32 && fills(ceil_div(vectors, 2 * each))) each *= 2;
  plan.group = power_of_two_above(ceil_div(vectors, each));
  constexpr std::int64_t kLeast = kBlock * 8;  // vectors that are worth a block
  // Joining the slices of two blocks takes as long as one block takes for these.
  if (outputs < kFewOutputs && vectors > 2 * kLeast) {
    std::int64_t slices =
        std::min(ceil_div(vectors, kLeast), ceil_div(16 * kMultiprocessors, outputs));
    plan.slice_vectors = round_up(ceil_div(vectors, slices), kBlock * 4);
    plan.slices = ceil_div(vectors, plan.slice_vectors);
  }
  plan.grid = plan.slices > 1 ? outputs * plan.slices : ceil_div(outputs, kBlock / plan.group);
  return plan;
}

ReduceBlocks plan_columns(std::int64_t outer, std::int64_t columns, std::int64_t count,
                          std::int64_t width) {
  constexpr std::int64_t kFewRows = 16;
  ReduceBlocks plan;
  std::int64_t vectors = ceil_div(columns, width);
  plan.outputs = outer * columns;
  plan.count = count;
  plan.width = columns;
  // Many elements: that memory is read in long pieces, a whole line at least, and that all blocks
  // run at once, so that each joins its threads once. With 8 tiles the last one joins few slices.
  constexpr std::int64_t kMany = std::int64_t{kMultiprocessors} * 4 * kBlock * 8;
  bool many = outer * vectors * count >= kMany;
  int least = 8;
  std::int64_t enough = 8, blocks = 4 * kMultiprocessors, rows = 8;  // rows: of a thread, at least
  if (many) {
    plan.lanes = std::min(plan.lanes, power_of_two_above(vectors));
    // Few rows of many columns: a thread takes all rows of its own columns.
    if (count <= kFewRows && columns >= kBlock * width && outer * vectors >= blocks * kBlock) {
      plan.lanes = kBlock;
      least = kBlock;
    }
  } else {
    // Few: that all blocks are at work soon, and none waits for others. A tile's lanes read two
    // sectors of a row at least, and there are as many tiles as that allows; where a block has too
    // many rows even so, slices, whose blocks read longer pieces.
    least = 4, enough = 60, blocks = 8 * kMultiprocessors, rows = 16;
    if (count * least > rows * kBlock) {
      plan.lanes = std::clamp(power_of_two_above(vectors), least, 16);
      enough = 1;
    } else {
      while (count * plan.lanes > rows * kBlock) plan.lanes /= 2;
    }
  }
  while (plan.lanes > least && outer * ceil_div(vectors, plan.lanes) < enough) plan.lanes /= 2;
  std::int64_t tiles_x = ceil_div(vectors, plan.lanes), tiles = outer * tiles_x;
  plan.slice_rows = count;
  std::int64_t below = kBlock / plan.lanes;
  if (tiles <= kSemaphores) {
    std::int64_t slices =
        std::min(ceil_div(count, below * rows), std::max<std::int64_t>(1, blocks / tiles));
    if (slices > 1) {
      plan.slice_rows = round_up(ceil_div(count, slices), below * 4);
      plan.slices = ceil_div(count, plan.slice_rows);
    }
  }
  plan.grid = tiles * plan.slices;
  if (plan.grid <= kMaxCount) {  // else nothing is launched
    plan.tiles = FastDiv(tiles);
    plan.tiles_x = FastDiv(tiles_x);
  }
  return plan;
}

}  // namespace rensa::cuda

namespace rensa::host {

bool reduces_columns(const ArrayView& kept, const ArrayView& reduced) {
  constexpr std::int64_t kShort = 16;
  return cuda::reduces_columns(kept, reduced) || (kept.size() > 1 && reduced.size() < kShort);
}

ReduceParts plan_outputs(std::int64_t outputs, std::int64_t count) {
  ReduceParts plan;
  plan.outputs = outputs;
  plan.count = count;
  plan.parts = std::max<std::int64_t>(1, ceil_div(count, kReducePart));
  plan.items = outputs * plan.parts;
  plan.grain = plan.parts > 1
                   ? 1
                   : std::max<std::int64_t>(1, kReduceGrain / std::max<std::int64_t>(1, count));
  return plan;
}

ReduceParts plan_tiles(std::int64_t outer, std::int64_t columns, std::int64_t count) {
  ReduceParts plan;
  plan.outputs = outer * columns;
  plan.count = count;
  plan.width = columns;
  plan.tile_width = std::min<std::int64_t>(columns, kReduceColumns);
  plan.tiles_x = ceil_div(columns, kReduceColumns);
  plan.tiles = outer * plan.tiles_x;
  plan.part_rows = round_up(kReducePart / plan.tile_width, kReduceRows);
  plan.parts = std::max<std::int64_t>(1, ceil_div(count, plan.part_rows));
  plan.items = plan.tiles * plan.parts;
  std::int64_t each = std::min<std::int64_t>(count, plan.part_rows) * plan.tile_width;
  plan.grain = plan.parts > 1
                   ? 1
                   : std::max<std::int64_t>(1, kReduceGrain / std::max<std::int64_t>(1, each));
  return plan;
}

}  // namespace rensa::host

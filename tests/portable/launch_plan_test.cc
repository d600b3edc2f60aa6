// What plans are made from: where vectors are aligned, and whether a reduction goes by columns.
#include "rensa/portable/launch_plan.h"

#include <gtest/gtest.h>

namespace rensa {
namespace {

alignas(64) char memory[4096];

/// float32 elements from byte `begin` on, with strides in bytes.
ArrayView view_of(std::int64_t begin, const Shape& shape, const Shape& strides) {
  ArrayView view;
  view.data = memory + begin;
  view.shape = shape;
  view.strides = strides;
  return view;
}

TEST(VectorsAreAligned, WhereTheyBeginAtMultiplesOfTheirSize) {
  struct Case {
    ArrayView view;
    bool along_last, aligned;
  };
  for (const auto& [view, along_last, aligned] : {
           Case{view_of(0, {8}, {4}), true, true},
           Case{view_of(4, {8}, {4}), true, false},
           Case{view_of(0, {3, 8}, {32, 4}), true, true},
           Case{view_of(0, {3, 8}, {36, 4}), true, false},
           Case{view_of(0, {1, 8}, {36, 4}), true, true},  // of one row
           Case{view_of(0, {2, 3, 8}, {100, 32, 4}), true, false},
           Case{view_of(0, {3, 8}, {4, 32}), false, false},  // one begins at each element
           Case{view_of(0, {3, 8}, {256, 32}), false, true},
           Case{view_of(16, {3, 8}, {256, -32}), false, true},
           Case{view_of(0, {3, 8}, {0, 16}), false, true},
       }) {
    EXPECT_EQ(cuda::vectors_are_aligned(view, along_last, 16), aligned)
        << view.data - memory << view.strides.str() << along_last;
  }
}

TEST(ReducesColumns, WhereOutputsLieMoreDensely) {
  struct Case {
    ArrayView kept, reduced;
    bool on_gpu, on_cpu;
  };
  for (const auto& [kept, reduced, on_gpu, on_cpu] : {
           Case{view_of(0, {50}, {4}), view_of(0, {30}, {200}), true, true},
           Case{view_of(0, {30}, {200}), view_of(0, {50}, {4}), false, false},
           Case{view_of(0, {30}, {40}), view_of(0, {10}, {4}), false, true},  // few elements each
           Case{view_of(0, {30}, {-8}), view_of(0, {50}, {240}), true, true},
           Case{view_of(0, {}, {}), view_of(0, {3}, {200}), false, false},  // one output
           Case{view_of(0, {50}, {200}), view_of(0, {}, {}), true, true},   // one element each
       }) {
    EXPECT_EQ(cuda::reduces_columns(kept, reduced), on_gpu) << kept.describe();
    EXPECT_EQ(host::reduces_columns(kept, reduced), on_cpu) << kept.describe();
  }
}

// Counts of tiles that are nought modulo 2^32 too.
TEST(LaunchPlan, ColumnsThatAreTooManyForOneLaunchAreCounted) {
  for (std::int64_t outer : {std::int64_t{1} << 31, std::int64_t{1} << 32, std::int64_t{3} << 32}) {
    EXPECT_GT(cuda::plan_columns(outer, 2, 2, 1).grid, cuda::kMaxCount) << outer;
  }
}

TEST(LaunchPlan, SlicesOfColumnsTakeEveryRowOnce) {
  struct Case {
    std::int64_t outer, columns, count, width;
  };
  for (const Case& c : {
           Case{1, 10, 100, 4}, Case{1, 1000, 1024, 4}, Case{3, 77, 5000, 1},
           Case{1, 64, 1605632, 8},   // channels of images
           Case{1, 2048, 6272, 8},    //
           Case{1, 3072, 16384, 8},   // units of a text's places
           Case{16, 5, 1 << 20, 8},   // less than a line
           Case{40000, 24, 4096, 4},  // more tiles than semaphores
           Case{1, 1 << 22, 64, 4},   //
           Case{1, 1 << 23, 2, 4},    // few rows
           Case{300, 4096, 16, 4},    //
       }) {
    SCOPED_TRACE(c.columns);
    cuda::ReduceBlocks plan = cuda::plan_columns(c.outer, c.columns, c.count, c.width);
    std::int64_t vectors = ceil_div(c.columns, c.width);
    std::int64_t tiles = c.outer * ceil_div(vectors, plan.lanes);
    EXPECT_EQ(plan.grid, tiles * plan.slices);
    EXPECT_GE(plan.slices * plan.slice_rows, c.count);
    EXPECT_LT((plan.slices - 1) * plan.slice_rows, c.count);
    if (plan.lanes == cuda::kBlock) EXPECT_EQ(plan.slices, 1);
    else EXPECT_LE(plan.lanes * c.width, cuda::kBlock);
    EXPECT_EQ(cuda::kBlock % plan.lanes, 0);
    if (c.outer * vectors * c.count * 16 < 64 << 20) continue;
    // Large: whole lines of 128 bytes where there are as many, and all blocks at once.
    EXPECT_GE(plan.lanes, std::min<std::int64_t>(8, vectors));
    EXPECT_TRUE(plan.slices == 1 || plan.grid <= 4 * cuda::kMultiprocessors) << plan.grid;
  }
}

TEST(LaunchPlan, TilesAreDivided) {
  cuda::ReduceBlocks plan = cuda::plan_columns(1000, 300, 64, 4);
  EXPECT_EQ(plan.grid, static_cast<std::int64_t>(plan.tiles.divisor) * plan.slices);
  EXPECT_EQ(plan.tiles.divisor % plan.tiles_x.divisor, 0u);
  EXPECT_EQ(plan.tiles.divide(plan.tiles.divisor * 5 + 3), 5u);
}

}  // namespace
}  // namespace rensa

// What a part of a captured step knows of its operations before it has captured them.
#include "rensa/backend/cuda/step_part_graph.h"

#include <gtest/gtest.h>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/operations/matmul/matmul.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// The room of (m, k) @ (k, n); nothing may be computed meanwhile.
cuda::StepRoom room_of_product(cuda::PartGraph& graph, std::int64_t m, std::int64_t n,
                               std::int64_t k) {
  Array a = xp::random::normal(0, 1, {m, k}, float32, gpu(0));
  Array b = xp::random::normal(0, 1, {k, n}, float32, gpu(0));
  Array c = xp::full({m, n}, 7, float32, gpu(0));
  operations::Matmul product;
  product.a = a.operand();
  product.b = b.operand();
  product.c = c.operand();
  auto bytes = static_cast<std::int64_t>(product.workspace_bytes());
  Array workspace = xp::zeros({bytes + 1}, uint8, gpu(0));
  cuda::StepRoom room =
      graph.room_of({&product, gpu(0), {}, 0, workspace.data(), static_cast<std::size_t>(bytes)});
  EXPECT_EQ(c.max().item<float>(), 7.0f);
  return room;
}

TEST(PartGraph, KnowsHowMuchRoomAnOperationTakes) {
  RENSA_NEEDS_GPUS(1);
  cuda::PartGraph graph(gpu(0), {}, {}, 0, 1);
  cuda::StepRoom small = room_of_product(graph, 16, 16, 8),
                 large = room_of_product(graph, 1024, 1000, 1000);
  EXPECT_GT(small.block, 0.0);
  EXPECT_FALSE(small.is_alone());
  EXPECT_GT(small.all, 0.0);
  EXPECT_LT(small.all, 0.1);
  EXPECT_TRUE(large.is_large());
  EXPECT_LE(large.block, 1.0);
  EXPECT_GT(large.all, 0.75);
}

}  // namespace
}  // namespace rensa

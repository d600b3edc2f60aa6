// Sums over GPUs.
#include "rensa/operations/all_reduce/all_reduce.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

std::vector<Device> two_gpus() { return {gpu(0), gpu(1)}; }

TEST(AllReduceGroup, RefusesWhatIsNoGpu) {
  EXPECT_THROW(cuda::AllReduceGroup({cpu()}), DeviceError);
  EXPECT_THROW(cuda::AllReduceGroup({gpu(0), cpu()}), DeviceError);
}

TEST(AllReduceGroup, RefusesAGpuTwice) {
  RENSA_NEEDS_GPUS(1);
  EXPECT_THROW(cuda::AllReduceGroup({gpu(0), gpu(0)}), DeviceError);
}

TEST(AllReduceGroup, SumsFromOneThreadAndFromOneThreadAGpu) {
  RENSA_NEEDS_GPUS(2);
  cuda::AllReduceGroup group(two_gpus());
  for (Dtype dtype : {float16, bfloat16, float32, float64}) {
    std::vector<std::vector<Array>> arrays;
    for (int rank = 0; rank < 2; ++rank) {
      Array big = xp::full({1000}, 1 + 2 * rank, dtype, gpu(rank));
      Array small = xp::arange(3, dtype, gpu(rank));
      arrays.push_back({big, small});
    }
    auto operands = [&](int rank) {
      std::vector<Operand> result;
      for (const Array& a : arrays[static_cast<std::size_t>(rank)]) result.push_back(a.operand());
      return result;
    };
    group.sum_all(std::vector<std::vector<Operand>>{operands(0), operands(1)});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] { group.sum(rank, operands(rank)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < 2; ++rank) {
      const auto& own = arrays[static_cast<std::size_t>(rank)];
      EXPECT_EQ(own[0].to_vector<double>(), std::vector<double>(1000, 8)) << dtype_name(dtype);
      EXPECT_EQ(own[1].to_vector<double>(), (std::vector<double>{0, 4, 8})) << dtype_name(dtype);
    }
  }
}

TEST(AllReduceGroup, ChecksBeforeAnyRankWaitsForTheOthers) {
  RENSA_NEEDS_GPUS(2);
  cuda::AllReduceGroup group(two_gpus());
  Array a = xp::ones({4}, float32, gpu(0)), b = xp::ones({4}, float32, gpu(1)),
        longer = xp::ones({5}, float32, gpu(1)), integers = xp::ones({4}, int32, gpu(1));
  using Lists = std::vector<std::vector<Operand>>;
  EXPECT_THROW(group.sum_all(Lists{{a.operand()}}), ShapeError);
  EXPECT_THROW(group.sum_all(Lists{{a.operand()}, {longer.operand()}}), ShapeError);
  EXPECT_THROW(group.sum_all(Lists{{a.operand()}, {}}), ShapeError);
  EXPECT_THROW(group.sum_all(Lists{{a.operand()}, {integers.operand()}}), DtypeError);
  EXPECT_THROW(group.sum_all(Lists{{b.operand()}, {a.operand()}}), DeviceError);
  EXPECT_THROW(group.sum(2, std::vector<Operand>{a.operand()}), IndexError);
  group.sum_all(Lists{{a.operand()}, {b.operand()}});
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>(4, 2.f));
}

}  // namespace
}  // namespace rensa

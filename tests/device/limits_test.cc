// Limits of GPUs, and what is said without one.
#include "rensa/device/limits.h"

#include <gtest/gtest.h>

#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Limits, AreSetAndRead) {
  RENSA_NEEDS_GPUS(1);
  std::size_t before = cuda::device_get_limit(cuda::Limit::stack_size, gpu());
  cuda::device_set_limit(cuda::Limit::stack_size, 2 * before + 1024, gpu());
  EXPECT_GE(cuda::device_get_limit(cuda::Limit::stack_size), 2 * before + 1024);
  cuda::device_set_limit(cuda::Limit::stack_size, before);
  for (cuda::Limit limit : {cuda::Limit::printf_fifo_size, cuda::Limit::malloc_heap_size}) {
    EXPECT_GT(cuda::device_get_limit(limit), 0u);
  }
}

TEST(Limits, AreOfGpusOnly) {
  EXPECT_THROW(cuda::device_get_limit(cuda::Limit::stack_size, cpu()), DeviceError);
  EXPECT_THROW(cuda::device_set_limit(cuda::Limit::stack_size, 1024, cpu()), DeviceError);
  if (num_gpus() == 0) {
    EXPECT_THROW(cuda::device_get_limit(cuda::Limit::stack_size), DeviceError);
  }
}

TEST(Limits, OfScratchAreSetAndRead) {
  std::size_t before = cuda::get_max_workspace_size();
  EXPECT_EQ(before, std::size_t{1} << 30);
  cuda::set_max_workspace_size(5000);
  EXPECT_EQ(cuda::get_max_workspace_size(), 5000u);
  cuda::set_max_workspace_size(before);
}

}  // namespace
}  // namespace rensa

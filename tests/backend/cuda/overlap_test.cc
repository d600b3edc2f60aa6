// Kernels that are brought to the processors while the work before them ends: they see all of it.
#include <gtest/gtest.h>

#include "rensa/array/linalg.h"
#include "rensa/array/routines.h"
#include "tests/testing.h"

namespace rensa {
namespace {

int rounds(int count) { return testing::quick() ? 3 : count; }

class Overlap : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { RENSA_NEEDS_GPUS(1); }
  cuda::Stream stream() const {
    std::string kind = GetParam();
    if (kind == "legacy") return cuda::Stream::null(gpu(0));
    if (kind == "per thread") return cuda::Stream::per_thread(gpu(0));
    return kind == "own" ? cuda::Stream(cuda::non_blocking) : cuda::current_stream(gpu(0));
  }
};

// Whole numbers of which float32 holds every sum.
TEST_P(Overlap, SumsSeeTheKernelBefore) {
  cuda::StreamScope scope(stream());
  Array x = xp::zeros({std::int64_t{1} << 24}, float32, gpu(0)),
        row = xp::zeros_like(x[Slice(0, 4)]);
  Array table = x.reshape({4096, 4096});
  for (int round = 1; round <= rounds(40); ++round) {
    x += 1.f;
    row += table.sum(0)[Slice(0, 4)];  // a sum of a sum of what is being written
    EXPECT_EQ(x.sum().item<float>(), static_cast<float>(round << 24));
    EXPECT_EQ(table.sum(1).max().item<float>(), static_cast<float>(round * 4096));
    int all_rounds = round * (round + 1) / 2;
    EXPECT_EQ(row.sum().item<float>(), static_cast<float>(all_rounds * 4096 * 4));
  }
}

TEST_P(Overlap, ShortOnesInARow) {
  cuda::StreamScope scope(stream());
  Array a = xp::ones({100, 100}, float32, gpu(0)), b = xp::eye(100, float32, gpu(0));
  for (int round = 1; round <= rounds(500); ++round) {
    Array product = xp::matmul(a, b);
    EXPECT_FLOAT_EQ(xp::linalg::norm(product).item<float>(), static_cast<float>(100 * round));
    EXPECT_EQ(product.sum(0).sum().item<float>(), static_cast<float>(10000 * round));
    a += 1.f;
  }
}

TEST_P(Overlap, WaitsForOtherStreamsToo) {
  cuda::Stream here = stream(), there(cuda::non_blocking);
  cuda::Event event;
  Array x = xp::zeros({std::int64_t{1} << 24}, float32, gpu(0));
  Array few = xp::ones({1000}, float32, gpu(0));
  cuda::synchronize(gpu(0));
  for (int round = 1; round <= rounds(40); ++round) {
    {
      cuda::StreamScope scope(there);
      x += 1.f;
    }
    cuda::StreamScope scope(here);
    few.sum();  // what the next one may overlap with
    event.record(there);
    here.wait(event);
    EXPECT_EQ(x.sum().item<float>(), static_cast<float>(round << 24));
    event.record(here);
    there.wait(event);
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, Overlap,
                         ::testing::Values("default", "own", "legacy", "per thread"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, ' ');
                           return name;
                         });

}  // namespace
}  // namespace rensa

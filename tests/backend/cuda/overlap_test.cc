// Kernels that are brought to the processors while the work before them ends: they see all of it.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "rensa/array.h"
#include "rensa/device/stream_graph.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/kernel/fuse.h"
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

// What reads the end of a long kernel's array: one of each family of kernels.
struct Reader {
  const char* name;
  std::function<Array(const Array& tail)> read;
  std::function<float(float value)> expected;  // each element of what is read, of a tail of `value`
};
std::vector<Reader> readers() {
  auto same = [](float v) { return v; };
  auto twice = [](float v) { return 2 * v; };
  auto rows = [](const Array& tail) { return tail.reshape({16, 16}); };
  Array order = xp::arange(15, -1, -1, int64, gpu(0)), eye = xp::eye(16, float32, gpu(0));
  Array keys = xp::zeros({16}, int64, gpu(0));
  return {
      {"elementwise", [](const Array& t) { return t + t; }, twice},
      {"of mixed dtypes", [](const Array& t) { return t + xp::zeros_like(t, {.dtype = float64}); },
       same},
      {"copy", [](const Array& t) { return t.copy(); }, same},
      {"transposed copy", [=](const Array& t) { return rows(t).T().copy(); }, same},
      {"conversion", [](const Array& t) { return t.astype(int32); }, same},
      {"rows by index", [=](const Array& t) { return rows(t)[order]; }, same},
      {"elements by index", [=](const Array& t) { return xp::take(t, order); }, same},
      {"scatter",
       [=](const Array& t) {
         Array sum = xp::zeros({1, 16}, float32, gpu(0));
         xp::add.at(sum, keys, rows(t));
         return sum;
       },
       [](float v) { return 16 * v; }},
      {"small product", [=](const Array& t) { return xp::matmul(rows(t), eye); }, same},
      {"scan", [](const Array& t) { return xp::cumsum(t)[Slice(255, 256)]; },
       [](float v) { return 256 * v; }},
      {"sort", [](const Array& t) { return xp::sort(t); }, same},
      {"made at run time",
       [](const Array& t) {
         static const ElementwiseKernel twice_of("float32 x", "float32 y", "y = 2 * x", "twice_of");
         return twice_of(t);
       },
       twice},
      {"fused",
       [](const Array& t) {
         static auto both = fuse([](const Array& x) { return x + x * 1.f; });
         return both(t);
       },
       twice},
  };
}

TEST_P(Overlap, EachKindSeesTheKernelBefore) {
  cuda::StreamScope scope(stream());
  Array x = xp::zeros({std::int64_t{1} << 24}, float32, gpu(0));
  Array tail = x[Slice((1 << 24) - 256, 1 << 24)];
  float value = 0;
  for (const Reader& reader : readers()) {
    for (int round = 1; round <= rounds(10); ++round) {
      x += 1.f;
      value += 1;
      Array read = reader.read(tail);
      EXPECT_TRUE(xp::all(read == reader.expected(value)).item<bool>())
          << reader.name << " in round " << round;
    }
  }
}

// The same in a graph, whose edges between kernels are programmatic ones.
TEST(OverlapInAGraph, EachKindSeesTheKernelBefore) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream own(cuda::non_blocking);
  cuda::StreamScope scope(own);
  Array x = xp::zeros({std::int64_t{1} << 24}, float32, gpu(0));
  Array tail = x[Slice((1 << 24) - 256, 1 << 24)];
  float value = 0;
  for (const Reader& reader : readers()) {
    reader.read(tail);  // what is compiled or chosen at the first call
    Array read;
    cuda::Graph graph = cuda::capture_graph(own, [&] {
      x += 1.f;
      read = reader.read(tail);
    });
    for (int round = 1; round <= rounds(10); ++round) {
      graph.launch();
      value += 1;
      EXPECT_TRUE(xp::all(read == reader.expected(value)).item<bool>())
          << reader.name << " in round " << round;
    }
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

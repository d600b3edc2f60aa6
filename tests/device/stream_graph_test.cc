// Captures of streams, and the memory that their graphs hold.
#include "rensa/device/stream_graph.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/allocators.h"
#include "rensa/device/memory_pool.h"
#include "tests/testing.h"

namespace rensa {
namespace {

cuda::Stream new_stream() { return cuda::Stream(gpu(0), cuda::non_blocking); }

TEST(StreamGraph, AnEmptyGraphSaysSo) {
  cuda::Graph graph;
  EXPECT_FALSE(graph);
  EXPECT_THROW(graph.launch(), ValueError);
  EXPECT_THROW(graph.num_nodes(), ValueError);
}

TEST(StreamGraph, LaunchesRepeatTheWork) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream();
  Array x = xp::full({1000}, 2, float32, gpu(0)), total = xp::zeros({1000}, float32, gpu(0)), y;
  cuda::synchronize(gpu(0));
  cuda::Graph graph = cuda::capture_graph(stream, [&] {
    EXPECT_TRUE(stream.is_capturing());
    y = xp::exp(x) * x;
    total += y;
  });
  EXPECT_FALSE(stream.is_capturing());
  EXPECT_GE(graph.num_nodes(), 3u);
  EXPECT_GT(graph.memory_bytes(), 0);
  EXPECT_NE(graph.debug_dot().find("digraph"), std::string::npos);
  EXPECT_EQ(total.sum().item<float>(), 0.f) << "recorded, not run";
  graph.upload(stream);
  for (int i = 0; i < 3; ++i) graph.launch(stream);
  stream.synchronize();
  float expected = std::exp(2.f) * 2;
  EXPECT_NEAR(total.to_vector<float>()[999], 3 * expected, 1e-3);
  x.fill(1);
  cuda::synchronize(gpu(0));
  graph.launch(stream);
  stream.synchronize();
  EXPECT_NEAR(y.to_vector<float>()[0], std::exp(1.f), 1e-5) << "the input's new values";
}

TEST(StreamGraph, ItsMemoryIsNotHandedToOthers) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream();
  std::vector<float> expected;
  Array result = xp::zeros({1 << 16}, float32, gpu(0));
  cuda::Graph graph;
  {
    Array x = xp::full({1 << 16}, 3, float32, gpu(0));
    cuda::synchronize(gpu(0));
    graph = cuda::capture_graph(stream, [&] {
      Array a = x * x;  // temporaries and the input go at the end of this block
      Array b = a + x;
      for (int i = 0; i < 5; ++i) b = b + a;
      result.assign(b);
    });
  }
  cuda::memory_pool(gpu(0)).free_all_blocks();
  // What would be the freed blocks, were they reused: filled and kept.
  cuda::StreamScope on(stream);
  std::vector<Array> noise;
  for (int i = 0; i < 40; ++i) noise.push_back(xp::full({1 << 16}, -1, float32, gpu(0)));
  graph.launch(stream);
  stream.synchronize();
  EXPECT_EQ(result.to_vector<float>()[77], 9 + 3 + 5 * 9.f);
  for (const Array& a : noise) ASSERT_EQ(a.sum().item<float>(), -65536.f);
}

TEST(StreamGraph, ScratchIsItsOwn) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream(), other = new_stream();
  Array x = xp::ones({1 << 20}, float32, gpu(0)), sum;
  cuda::synchronize(gpu(0));
  cuda::Graph graph = cuda::capture_graph(stream, [&] { sum = x.sum(); });
  // The graph on one stream while the stream that recorded it works with its own scratch.
  for (int i = 0; i < 50; ++i) {
    graph.launch(other);
    cuda::StreamScope on(stream);
    Array eager = x.sum();
    ASSERT_EQ(eager.item<float>(), 1048576.f);
    other.synchronize();
    ASSERT_EQ(sum.item<float>(), 1048576.f);
  }
}

TEST(StreamGraph, WaitsThrowMeanwhile) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream(), other = new_stream();
  Array x = xp::ones({10}, float32, gpu(0)), host = xp::ones({10}, float32, cpu()), y;
  cuda::synchronize(gpu(0));
  cuda::Graph graph = cuda::capture_graph(stream, [&] {
    y = x + x;
    EXPECT_THROW(y.sum().item<float>(), SyncError);
    EXPECT_THROW(y.to(cpu()), SyncError) << "to pageable memory";
    EXPECT_THROW(y.set(host), SyncError) << "from pageable memory";
    EXPECT_THROW(other.synchronize(), SyncError);
    EXPECT_THROW(cuda::synchronize(gpu(0)), SyncError);
    EXPECT_THROW(stream.begin_capture(), ValueError);
  });
  graph.launch(stream);
  stream.synchronize();
  EXPECT_EQ(y.to_vector<float>()[9], 2.f);
}

TEST(StreamGraph, OtherStreamsJoin) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream(), side = new_stream();
  Array x = xp::full({1 << 18}, 2, float32, gpu(0)), left, right, both;
  cuda::synchronize(gpu(0));
  cuda::Graph graph = cuda::capture_graph(stream, [&] {
    cuda::Event fork, join;
    stream.record(fork);
    side.wait(fork);
    {
      cuda::StreamScope on(side);
      right = (x * x).sum();
    }
    left = x.sum();
    side.record(join);
    stream.wait(join);
    both = left + right;
  });
  EXPECT_FALSE(side.is_capturing());
  for (int i = 0; i < 20; ++i) graph.launch(stream);
  stream.synchronize();
  EXPECT_EQ(both.item<float>(), 6.f * (1 << 18));
  // Both streams are as before.
  cuda::StreamScope on(side);
  EXPECT_EQ((x + x).sum().item<float>(), 4.f * (1 << 18));
}

TEST(StreamGraph, FreesOfOtherMemoryGoOnMeanwhile) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream();
  Array x = xp::full({1 << 16}, 5, float32, gpu(0)), y;
  Array passing = xp::full({1 << 16}, 7, float32, gpu(0)), seen;
  {
    cuda::Event ready;
    ready.record(gpu(0));
    stream.wait(ready);
    cuda::StreamScope on(stream);
    seen = passing + passing;  // of another stream's memory, used here
  }
  cuda::Graph graph = cuda::capture_graph(stream, [&] {
    y = x + x;
    passing = Array();  // its free waits for what `stream` did before
  });
  for (int i = 0; i < 20; ++i) xp::full({1 << 16}, -1, float32, gpu(0));
  graph.launch(stream);
  stream.synchronize();
  EXPECT_EQ(seen.to_vector<float>()[5], 14.f);
  EXPECT_EQ(y.to_vector<float>()[5], 10.f);
}

TEST(StreamGraph, AnExceptionEndsTheCapture) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream();
  Array x = xp::ones({100}, float32, gpu(0));
  cuda::synchronize(gpu(0));
  EXPECT_THROW(cuda::capture_graph(stream,
                                   [&] {
                                     Array y = x + x;
                                     throw std::runtime_error("enough");
                                   }),
               std::runtime_error);
  EXPECT_FALSE(stream.is_capturing());
  EXPECT_THROW(stream.end_capture(), ValueError);
  cuda::StreamScope on(stream);
  Array y = x + x;
  EXPECT_EQ(y.sum().item<float>(), 200.f);
  EXPECT_TRUE(cuda::memory_pool(gpu(0)).owns(y.storage().get()));
}

TEST(StreamGraph, ACaptureNobodyEndsGoesWithItsThread) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream();
  std::thread elsewhere([&] { stream.begin_capture(); });
  elsewhere.join();
  EXPECT_FALSE(stream.is_capturing());
  stream.synchronize();
}

TEST(StreamGraph, NotOfTheLegacyStream) {
  RENSA_NEEDS_GPUS(1);
  EXPECT_THROW(cuda::Stream::null(gpu(0)).begin_capture(), ValueError);
}

TEST(StreamGraph, HostFunctionsLiveAsLongAsLaunches) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream();
  auto count = std::make_shared<std::atomic<int>>(0);
  {
    cuda::Graph graph = cuda::capture_graph(
        stream, [&] { stream.launch_host_func([count] { count->fetch_add(1); }); });
    for (int i = 0; i < 10; ++i) graph.launch(stream);
  }
  stream.synchronize();
  EXPECT_EQ(*count, 10);
}

TEST(StreamGraph, MemoryGoesBackWithTheGraph) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream = new_stream();
  Array x = xp::ones({1 << 20}, float32, gpu(0));
  cuda::synchronize(gpu(0));
  // Other programs on this GPU take and give memory too: what leaks is gone after every round.
  constexpr int kRounds = 100, kFirst = 2;  // the first ones load kernels
  int lost = 0;
  std::int64_t before = 0;
  for (int round = 0; round < kFirst + kRounds && lost >= round - kFirst; ++round) {
    {
      cuda::Graph graph = cuda::capture_graph(stream, [&] { Array y = x + x, z = y * x; });
      graph.launch(stream);
      stream.synchronize();
    }
    std::int64_t now = cuda::mem_info(gpu(0)).free;
    if (round >= kFirst) lost += now < before;
    before = now;
  }
  EXPECT_LT(lost, kRounds);
}

}  // namespace
}  // namespace rensa

// Replays as CUDA graphs: products that read an operand before the work before is done, and the
// graphs of several GPUs that wait for each other.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <tuple>
#include <vector>

#include "rensa/array.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct Product {
  const char* name;
  std::int64_t m, k, n;
  bool transposed;  // the right operand
};
// By each kernel of ours, and by cuBLASLt.
const Product kProducts[] = {{"dot", 4, 64, 64, true},
                             {"outer", 64, 8, 64, false},
                             {"tiles", 32, 64, 64, false},
                             {"tiles along k", 32, 64, 64, true},
                             {"many tiles", 200, 64, 64, false}};

class Settled : public ::testing::TestWithParam<std::tuple<Product, Device>> {
 protected:
  Product product = std::get<0>(GetParam());
  Device device = std::get<1>(GetParam());
  CaptureCache cache{{.replay_lists = true}};
  // Its last elements are an operand; on a GPU it takes long to write.
  std::int64_t size = std::int64_t{1} << (device.is_cuda() ? 24 : 14);
  Array all = xp::zeros({size}, float32, device);

  Array weight() const {
    const auto& [name, m, k, n, transposed] = product;
    Array tail = all[Slice(size - k * n, size)];
    return transposed ? tail.reshape({n, k}).T() : tail.reshape({k, n});
  }
  Array ones() const { return xp::ones({product.m, product.k}, float32, device); }
  void expect(const Variables& result, int value) const {
    auto sum = static_cast<float>(product.k * value);
    EXPECT_TRUE(xp::all(result[0].array() == sum).item<bool>()) << value;
  }
  void TearDown() override { EXPECT_GE(cache.stats().replays, 15) << cache.stats().last_fallback; }
};

TEST_P(Settled, IsNoOperandThatTheStepHasWritten) {
  auto step = [&](const Variables& in) {
    all += 1.f;
    return Variables{constant(xp::matmul(in[0].array(), weight()))};
  };
  for (int round = 1; round <= 20; ++round) expect(cache.call(step, {constant(ones())}), round);
}

TEST_P(Settled, IsOneThatIsWrittenBetweenReplays) {
  auto step = [&](const Variables& in) {
    return Variables{constant(xp::matmul(in[0].array(), weight()))};
  };
  for (int round = 1; round <= 20; ++round) {
    all += 1.f;
    expect(cache.call(step, {constant(ones())}), round);
  }
}

TEST_P(Settled, IsOneThatTheStepWritesLater) {
  auto step = [&](const Variables& in) {
    Array result = xp::matmul(in[0].array(), weight());
    all += 1.f;
    return Variables{constant(result)};
  };
  for (int round = 0; round < 20; ++round) expect(cache.call(step, {constant(ones())}), round);
}

TEST_P(Settled, IsNoInput) {
  auto step = [&](const Variables& in) {
    return Variables{constant(xp::matmul(ones(), in[0].array()))};
  };
  for (int round = 1; round <= 20; ++round) {
    all += 1.f;
    expect(cache.call(step, {constant(weight().copy())}), round);
  }
}

INSTANTIATE_TEST_SUITE_P(Products, Settled,
                         ::testing::Combine(::testing::ValuesIn(kProducts),
                                            ::testing::ValuesIn(testing::test_devices())),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param).name;
                           std::erase(name, ' ');
                           return name + (std::get<1>(info.param).is_cuda() ? "_cuda" : "_cpu");
                         });

class InputsOfReplays : public ::testing::TestWithParam<Device> {
 protected:
  CaptureCache cache{{.replay_lists = true}};
  void TearDown() override { EXPECT_GE(cache.stats().replays, 15) << cache.stats().last_fallback; }
};

// Whether they are copied or read where they are: memory that comes in turns, as that of batches
// does, some of it once only, and that of an input which is a result too.
TEST_P(InputsOfReplays, ComeInTurns) {
  auto step = [](const Variables& in) {
    return Variables{constant(xp::matmul(in[0].array(), in[1].array())), in[1]};
  };
  Array ones = xp::ones({32, 64}, float32, GetParam());
  std::vector<Array> turns;
  for (int i = 0; i < 3; ++i) turns.push_back(xp::zeros({64, 64}, float32, GetParam()));
  for (int round = 1; round <= 40; ++round) {
    Array turn = round % 7 == 0 ? xp::empty({64, 64}, float32, GetParam())
                                : turns[static_cast<std::size_t>(round % 3)];
    auto value = static_cast<float>(round);
    turn.fill(value);
    Variables out = cache.call(step, {constant(ones), constant(turn)});
    EXPECT_TRUE(xp::all(out[1].array() == value).item<bool>()) << round;
    turn.fill(-1.f);  // behind the launch
    EXPECT_TRUE(xp::all(out[0].array() == 64 * value).item<bool>()) << round;
  }
}

TEST_P(InputsOfReplays, MayBeMemoryThatTheStepWrites) {
  Array all = xp::zeros({1 << 20}, float32, GetParam());
  auto step = [&](const Variables& in) {
    Array before = in[0].array() * 1.f;
    all += 1.f;
    return Variables{constant(before)};
  };
  for (int round = 0; round < 20; ++round) {
    Variables out = cache.call(step, {constant(all)});
    EXPECT_TRUE(xp::all(out[0].array() == static_cast<float>(round)).item<bool>()) << round;
  }
}

// Results lie where they are likely to lie again: let go of at once, kept for a while, fed back;
// one given twice, one that is a part of what the step makes, and one that a link keeps.
TEST_P(InputsOfReplays, GiveResultsThatStay) {
  Array one = xp::ones({64, 64}, float32, GetParam()), kept;
  auto step = [&](const Variables& in) {
    Array next = in[0].array() + one, all = xp::matmul(next, one);
    if (!kept.defined()) kept = xp::zeros_like(all);
    kept += all;
    return Variables{constant(next), constant(next), constant(all[{Slice(0, 32)}]), constant(kept)};
  };
  Variable x = constant(xp::zeros({64, 64}, float32, GetParam()));
  std::vector<std::pair<float, Variables>> earlier;
  float sum = 0;
  for (int round = 1; round <= 40; ++round) {
    auto value = static_cast<float>(round);
    Variables out = cache.call(step, {x});
    sum += 64 * value;
    x = out[0];
    if (round % 3 == 0) earlier.emplace_back(sum, out);
    if (earlier.size() > 2) earlier.erase(earlier.begin());
    EXPECT_TRUE(xp::all(out[1].array() == value).item<bool>()) << round;
    EXPECT_TRUE(xp::all(out[2].array() == 64 * value).item<bool>()) << round;
    EXPECT_TRUE(xp::all(out[3].array() == sum).item<bool>()) << round;
    for (const auto& [at_that_time, results] : earlier) {
      EXPECT_TRUE(xp::all(results[3].array() == at_that_time).item<bool>()) << round;
      EXPECT_TRUE(xp::all(results[0].array() * 64 == results[2].array()[{0, 0}]).item<bool>());
    }
  }
}

// Launches on another stream come behind those before, and those behind them.
TEST(InputsOfReplaysInPlace, MayBeReadOnAnyStream) {
  RENSA_NEEDS_GPUS(1);
  no_backprop_mode inference;
  CaptureCache cache;
  Device device = gpu(0);
  cuda::Stream other(device, cuda::non_blocking);
  std::int64_t size = std::int64_t{1} << 22;
  Array sum = xp::zeros({size}, float32, device), one = xp::ones({size}, float32, device);
  auto step = [&](const Variables& in) {
    sum += in[0].array();
    return Variables{in[0] * 1.f};
  };
  for (int round = 1; round <= 40; ++round) {
    if (round <= 20 || round % 2 == 0) {
      cache.call(step, {constant(one)});
    } else {
      cuda::StreamScope scope(other);
      cache.call(step, {constant(one)});
    }
  }
  cuda::synchronize(device);
  EXPECT_TRUE(xp::all(sum == 40.f).item<bool>());
  EXPECT_GE(cache.stats().replays, 30) << cache.stats().last_fallback;
}

// The priority is in the graph's nodes, and large products have a higher one.
TEST(ReplayGraph, RecordedOnAStreamOfAnyPriority) {
  RENSA_NEEDS_GPUS(1);
  no_backprop_mode inference;
  Device device = gpu(0);
  cuda::PriorityRange range = cuda::Stream::priority_range(device);
  Array x = xp::random::normal(0, 1, {256, 512}, float32, device);
  Array w = xp::random::normal(0, 1, {512, 512}, float32, device);
  auto step = [&](const Variables& in) {
    return Variables{F::relu(F::matmul(in[0], constant(w))) + F::sum(in[0])};
  };
  Array want = step({constant(x)})[0].array();
  for (int priority = range.first; priority <= range.last; ++priority) {
    CaptureCache cache;
    cuda::Stream stream(device, cuda::non_blocking, priority);
    {
      cuda::StreamScope scope(stream);
      for (int round = 0; round < 5; ++round) {
        EXPECT_TRUE(xp::array_equal(cache.call(step, {constant(x)})[0].array(), want)) << priority;
      }
    }
    EXPECT_TRUE(xp::array_equal(cache.call(step, {constant(x)})[0].array(), want)) << priority;
    EXPECT_GE(cache.stats().replays, 3) << cache.stats().last_fallback;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, InputsOfReplays, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cuda() ? "cuda" : "cpu"; });

/// Goes to the second GPU and back; each has something to do meanwhile.
Variables there_and_back(const Variables& in) {
  Variable here = in[0] * 2.f;
  Variable there = F::copy(here, gpu(1)) + 1.f;
  Variable back = F::copy(there * 3.f, gpu(0));
  return {back + here, there};
}

// Streams wait for each other's work in both directions, and the threads share the GPUs' streams.
TEST(GraphsOfSeveralGpus, ThreadsLaunchSideBySide) {
  RENSA_NEEDS_GPUS(2);
  auto work = [](float value) {
    no_backprop_mode inference;
    CaptureCache cache;
    for (int round = 1; round <= 300; ++round) {
      float x = value * static_cast<float>(round);
      Variables out = cache.call(there_and_back, {constant(xp::full({1000}, x, float32, gpu(0)))});
      Array moved = out[1].array().to(gpu(0)).to(gpu(1));
      ASSERT_TRUE(xp::all(out[0].array() == 3.f * (2.f * x + 1.f) + 2.f * x).item<bool>()) << round;
      ASSERT_TRUE(xp::all(moved == 2.f * x + 1.f).item<bool>()) << round;
    }
    EXPECT_GE(cache.stats().replays, 290) << cache.stats().last_fallback;
  };
  std::vector<std::future<void>> threads;
  for (float value : {1.f, 2.f, 4.f}) {
    threads.push_back(std::async(std::launch::async, work, value));
  }
  for (std::future<void>& thread : threads) thread.get();  // throws what it threw
}

// What a stream has before a launch and behind it is before and behind the whole step, also what
// the step does on the other GPU.
TEST(GraphsOfSeveralGpus, StandInTheOrderOfBothStreams) {
  RENSA_NEEDS_GPUS(2);
  no_backprop_mode inference;
  std::int64_t size = std::int64_t{1} << 22;
  Array there = xp::zeros({size}, float32, gpu(1));
  CaptureCache cache;
  auto step = [&](const Variables& in) {
    return Variables{F::copy(constant(there), gpu(0)) + in[0]};
  };
  Variable one = constant(xp::ones({size}, float32, gpu(0)));
  for (int round = 1; round <= 50; ++round) {
    there += 1.f;  // read by the first GPU
    Variables out = cache.call(step, {one});
    there += 1.f;  // and written again behind it
    EXPECT_TRUE(xp::all(out[0].array() == static_cast<float>(2 * round)).item<bool>()) << round;
  }
  EXPECT_GE(cache.stats().replays, 45) << cache.stats().last_fallback;
}

// A launch on other streams comes behind the one before.
TEST(GraphsOfSeveralGpus, FollowOneAnotherOnWhicheverStreams) {
  RENSA_NEEDS_GPUS(2);
  no_backprop_mode inference;
  cuda::Stream first(gpu(0), cuda::non_blocking), second(gpu(1), cuda::non_blocking);
  Array sum = xp::zeros({1 << 20}, float32, gpu(1));
  cuda::synchronize(gpu(1));
  CaptureCache cache;
  auto step = [&](const Variables& in) {
    sum += F::copy(in[0], gpu(1)).array();
    return Variables{in[0] * 1.f};
  };
  for (int round = 1; round <= 60; ++round) {
    Variable one = constant(xp::ones({1 << 20}, float32, gpu(0)));
    for (int i = 0; i < 2 && cache.stats().replays == 0; ++i) cuda::synchronize(gpu(i));  // eager
    cuda::synchronize(gpu(0));
    if (round % 2 == 0) {
      cache.call(step, {one});
    } else {
      cuda::StreamScope on_first(first), on_second(second);
      cache.call(step, {one});
    }
  }
  cuda::synchronize(gpu(1));
  EXPECT_TRUE(xp::all(sum == 60.f).item<bool>());
  EXPECT_GE(cache.stats().replays, 50) << cache.stats().last_fallback;
}

}  // namespace
}  // namespace rensa

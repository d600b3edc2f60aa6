// Arrays between host and devices, and the waits that that takes.
#include <cstring>
#include <functional>

#include "rensa/device/allocators.h"
#include "rensa/device/pool_options.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

class TransferTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, TransferTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

TEST_P(TransferTest, ToIsTheSameArrayWhereItIs) {
  Array a = xp::arange(6).reshape({2, 3});
  EXPECT_EQ(a.to(GetParam()).storage(), a.storage());
  Array copy = a.copy(GetParam());
  EXPECT_NE(copy.storage(), a.storage());
  EXPECT_EQ(values(copy), values(a));
  EXPECT_EQ(to_cpu(a).device(), cpu());
  EXPECT_EQ(values(a.T().get()), V({0, 3, 1, 4, 2, 5}));
  EXPECT_NE(a.get().storage(), a.storage());
}

// Of each dtype, patterns of bits that are no numbers, too.
TEST_P(TransferTest, ToADeviceAndBackKeepsEveryBitOfEveryDtype) {
  for (int i = 0; i < kNumDtypes; ++i) {
    auto dtype = static_cast<Dtype>(i);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(16 * 257));
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      bytes[k] = static_cast<std::uint8_t>(dtype == bool_ ? k % 2 : k * 89 + k / 256);
    }
    Array host = xp::empty({std::ssize(bytes) / itemsize(dtype)}, dtype, cpu());
    std::memcpy(host.data(), bytes.data(), bytes.size());
    for (const Array& back : {to_cpu(host.to(GetParam())), host.copy(GetParam()).get()}) {
      EXPECT_EQ(back.device(), cpu());
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(std::memcmp(back.data(), bytes.data(), bytes.size()), 0) << dtype_name(dtype);
    }
  }
}

// Few bytes come to the host by another way than many, aligned ones by another than others.
TEST_P(TransferTest, OfAnySizeComesToTheHost) {
  for (std::int64_t size :
       {1, 15, 16, 31, 255, 256, 257, 4096, 16368, 16383, 16384, 16385, 40000}) {
    for (std::int64_t skip : {0, 1, 16}) {
      Array whole = (xp::arange(size + skip, int32) % 251).astype(uint8);
      Array there = whole.to(GetParam());
      EXPECT_EQ(there[Slice(skip, size + skip)].to_vector<std::uint8_t>(),
                whole[Slice(skip, size + skip)].to_vector<std::uint8_t>())
          << size << " behind " << skip;
    }
  }
}

TEST_P(TransferTest, Items) {
  EXPECT_EQ(xp::array({{7.5f}}).item<float>(), 7.5f);
  EXPECT_EQ(xp::array({7.5f}).item<int>(), 7);
  EXPECT_TRUE(xp::array({true}).item<bool>());
  EXPECT_EQ(xp::arange(10)[-1].item<std::int64_t>(), 9);
  EXPECT_EQ(xp::full({1}, ~std::uint64_t{0}).item<std::uint64_t>(), ~std::uint64_t{0});
  EXPECT_EQ((xp::ones({1}, complex64) * std::complex<float>(2, 3)).item<std::complex<double>>(),
            std::complex<double>(2, 3));
  EXPECT_EQ(xp::full({1}, 1.5, bfloat16).item<float>(), 1.5f);
  EXPECT_THROW(xp::ones({2}).item<float>(), ShapeError);
  EXPECT_THROW(xp::ones({0}).item<float>(), ShapeError);
}

TEST_P(TransferTest, Vectors) {
  Array a = xp::arange(6, float32).reshape({2, 3}).T();
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(a.to_vector<std::int16_t>(), std::vector<std::int16_t>({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ((a > 2).to_vector<bool>(), std::vector<bool>({false, true, false, true, false, true}));
  EXPECT_EQ(xp::zeros({0, 2}).to_vector<float>().size(), 0u);
  EXPECT_THROW(Array().to_vector<float>(), ValueError);
}

TEST_P(TransferTest, SetChecks) {
  Array a = xp::zeros({2, 3});
  a.set(xp::ones({2, 3}, float32, cpu()));
  EXPECT_EQ(values(a), V(6, 1));
  EXPECT_THROW(a.set(xp::ones({6})), ShapeError);
  EXPECT_THROW(a.set(xp::ones({2, 3}, float64)), DtypeError);
  EXPECT_THROW(a.set(xp::ones({3, 2}).T()), ShapeError);
}

TEST(TransferErrors, GpusThatAreNotThere) {
  Array a = xp::ones({2});
  std::string text = thrown<DeviceError>([&] { to_gpu(a, kMaxGpus - 1); });
  EXPECT_FALSE(text.empty());
  EXPECT_THROW(a.to(gpu(kMaxGpus - 1)), DeviceError);
  EXPECT_THROW(xp::zeros({2}, float32, gpu(kMaxGpus - 1)), DeviceError);
  EXPECT_THROW(xp::zeros({2}, float32, gpu(100)), DeviceError);
  EXPECT_THROW(DeviceScope scope(gpu(kMaxGpus - 1)), DeviceError);
  EXPECT_EQ(ThreadState::current().device, cpu());
  if (num_gpus() == 0) {
    EXPECT_THROW(to_gpu(a), DeviceError);
    EXPECT_THROW(to_pinned_memory(a), DeviceError);
    EXPECT_THROW(xp::empty_pinned({2}), DeviceError);
    EXPECT_EQ(try_gpu(), cpu());
  }
  EXPECT_EQ(values(a), V({1, 1}));
}

TEST(TransferGpu, MakingAnArrayDoesNotWait) {
  RENSA_NEEDS_GPUS(1);
  xp::zeros({1}, float32, gpu(0));
  std::int64_t before = cuda::sync_count();
  std::vector<float> source(100000, 1.f);
  Array a = xp::array(source, gpu(0));
  std::fill(source.begin(), source.end(), 2.f);
  Array b = to_gpu(xp::ones({1000}, float32, cpu()), 0);
  EXPECT_EQ(cuda::sync_count(), before);
  EXPECT_EQ(a.sum().item<float>(), 100000);
  EXPECT_EQ(cuda::sync_count(), before + 1);
  EXPECT_EQ(b.to_vector<float>(), std::vector<float>(1000, 1.f));
  EXPECT_EQ(cuda::sync_count(), before + 2);
  b.str();
  EXPECT_EQ(cuda::sync_count(), before + 3);
}

TEST(TransferGpu, PinnedSetAndGetOnStreams) {
  RENSA_NEEDS_GPUS(1);
  Array h1 = to_pinned_memory(xp::ones({100, 1000}, float64));
  Array h2 = to_pinned_memory(xp::full({100, 1000}, 2., float64));
  EXPECT_TRUE(h1.storage()->is_pinned());
  Array g1 = xp::empty(h1.shape(), float64, gpu(0)), g2 = xp::empty_like(g1);
  DeviceScope on(gpu(0));
  cuda::Stream s1(cuda::non_blocking), s2(cuda::non_blocking);
  std::int64_t before = cuda::sync_count();
  g1.set(h1, s1);
  g2.set(h2, s2);
  EXPECT_EQ(cuda::sync_count(), before);
  s1.synchronize();
  g1 *= 3;
  g2.get(h1, s2);
  s2.synchronize();
  EXPECT_EQ(cuda::sync_count(), before + 2);
  EXPECT_EQ(h1.sum().item<double>(), 200000);
  EXPECT_EQ(g1.sum().item<double>(), 300000);
  Array pageable = xp::empty({100, 1000}, float64, cpu());
  before = cuda::sync_count();
  g1.get(pageable, s1);
  EXPECT_EQ(cuda::sync_count(), before + 1);
  EXPECT_EQ(pageable.sum().item<double>(), 300000);
}

// Work that is queued for an array that is gone must not reach into the one that has its memory
// now.
TEST(TransferGpu, ReusedMemoryOnAnotherStreamWaitsForWhatIsQueuedForItsFormerArray) {
  RENSA_NEEDS_GPUS(1);
  constexpr std::int64_t kSize = 1 << 20;
  Array pinned = to_pinned_memory(xp::ones({kSize})), wanted = pinned.to(gpu(0));
  Array m = xp::full({2048, 2048}, 1e-3, float32, gpu(0)), product = xp::matmul(m, m);
  DeviceScope on(gpu(0));
  cuda::Stream side(cuda::non_blocking);
  Array landing = xp::empty({kSize}, float32, gpu(0));
  landing.set(pinned, side);  // the stream's first work, so that it is at hand
  side.synchronize();
  const std::pair<const char*, std::function<void(const Array&)>> first_uses[] = {
      {"a copy", [&](const Array& a) { a.set(pinned, side); }},
      {"a pageable copy", [&](const Array& a) { a.set(xp::ones({kSize}), side); }},
      {"a kernel",
       [&](const Array& a) {
         cuda::StreamScope scope(side);
         a.fill(1);
       }},
  };
  for (const auto& [name, first_use] : first_uses) {
    cuda::synchronize(gpu(0));
    for (int i = 0; i < 30; ++i) product = xp::matmul(m, product);  // takes a while
    cuda::PoolScope pool(name);  // with nothing but the two in it
    const void* memory = nullptr;
    {
      Array former = xp::empty({kSize}, float32, gpu(0));
      memory = former.data();
      former.fill(7);
    }
    Array fresh = xp::empty({kSize}, float32, gpu(0));
    if (!pool_off()) {
      ASSERT_EQ(fresh.data(), memory) << "the test wants the same memory";
    }
    first_use(fresh);
    side.synchronize();
    cuda::synchronize(gpu(0));
    EXPECT_TRUE(xp::array_equal(fresh, wanted)) << name;
  }
  for (const auto& [name, first_use] : first_uses) cuda::drop_named_pool(name, gpu(0));
}

TEST(TransferGpu, BetweenGpus) {
  RENSA_NEEDS_GPUS(2);
  Array a = xp::arange(6, float32, gpu(0)).reshape({2, 3});
  Array b = a.T().to(gpu(1));
  EXPECT_EQ(b.device(), gpu(1));
  EXPECT_EQ(values(b), V({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(b + 1), V({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(ThreadState::current().device, cpu());
  EXPECT_EQ(values(b.to(gpu(0)) + a.T()), V({0, 6, 2, 8, 4, 10}));
}

// Few bytes go by a kernel, many by a copy engine; either comes between what is queued before and
// behind it on both GPUs.
TEST(TransferGpu, BetweenGpusInTheOrderOfWhatIsQueued) {
  RENSA_NEEDS_GPUS(2);
  for (std::int64_t size : {1, 3, 1000, 1 << 18, (1 << 18) + 1, 1 << 23}) {
    for (int from : {0, 1}) {
      Array source = xp::zeros({size}, float32, gpu(from));
      for (int round = 1; round <= 10; ++round) {
        source += 1;
        Array copy = source.to(gpu(1 - from));
        source += 1;  // after the copy
        copy *= 2;
        EXPECT_EQ(copy.min().item<int>(), 4 * round - 2) << size;
        EXPECT_EQ(copy.max().item<int>(), 4 * round - 2) << size;
      }
    }
  }
}

}  // namespace
}  // namespace rensa

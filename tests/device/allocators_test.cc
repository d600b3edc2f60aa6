// Which pool an allocation comes from.
#include "rensa/device/allocators.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/device/fake_source.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// An allocator over memory that counts.
class FakeAllocator final : public cuda::Allocator {
 public:
  MemoryPool& pool(Device device) override {
    EXPECT_EQ(device, gpu(0));
    return pool_;
  }

 private:
  testing::FakeDevice device_;
  MemoryPool pool_{gpu(0), device_.source()};
};

TEST(Allocators, ScopesNestAndEnd) {
  testing::FakeDevice device;
  MemoryPool inner(gpu(0), device.source()), innermost(gpu(0), device.source());
  auto outer = std::make_shared<FakeAllocator>();
  auto scope = cuda::using_allocator(outer);
  EXPECT_EQ(&cuda::current_pool(gpu(0)), &outer->pool(gpu(0)));
  {
    auto scope2 = cuda::using_allocator(inner);
    EXPECT_EQ(&cuda::current_pool(gpu(0)), &inner);
    {
      cuda::AllocatorScope scope3(innermost);
      EXPECT_EQ(&cuda::current_pool(gpu(0)), &innermost);
    }
    EXPECT_EQ(&cuda::current_pool(gpu(0)), &inner);
    auto scope4 = cuda::using_allocator(outer);
    EXPECT_EQ(&cuda::current_pool(gpu(0)), &outer->pool(gpu(0))) << "the latest scope counts";
  }
  EXPECT_EQ(&cuda::current_pool(gpu(0)), &outer->pool(gpu(0)));
}

TEST(Allocators, TheProcessHasOneAndScopesGoBeforeIt) {
  EXPECT_EQ(cuda::get_allocator(), cuda::pool_allocator());
  auto mine = std::make_shared<FakeAllocator>();
  testing::FakeDevice device;
  MemoryPool scoped(gpu(0), device.source());
  cuda::set_allocator(mine);
  EXPECT_EQ(cuda::get_allocator(), mine);
  EXPECT_EQ(&cuda::current_pool(gpu(0)), &mine->pool(gpu(0)));
  cuda::AllocatorScope scope(scoped);
  EXPECT_EQ(&cuda::current_pool(gpu(0)), &scoped);
  std::thread elsewhere([&] { EXPECT_EQ(&cuda::current_pool(gpu(0)), &mine->pool(gpu(0))); });
  elsewhere.join();
  cuda::set_allocator(nullptr);
  EXPECT_EQ(cuda::get_allocator(), cuda::pool_allocator());
}

TEST(Allocators, ThereIsNoneForTheCpu) {
  testing::FakeDevice device;
  MemoryPool pinned(cpu(), device.source(), true);
  EXPECT_THROW(cuda::AllocatorScope scope(pinned), DeviceError);
  EXPECT_THROW(cuda::current_pool(cpu()), DeviceError);
  EXPECT_THROW(cuda::raw_allocator()->pool(cpu()), DeviceError);
  EXPECT_THROW(cuda::named_pool("x", cpu()), DeviceError);
  cuda::PoolScope nothing("forward", cpu());
  EXPECT_EQ(xp::ones({3}, float32, cpu()).size(), 3);
}

void compute_with(const cuda::AllocatorPtr& allocator) {
  auto scope = cuda::using_allocator(allocator);
  MemoryPool& pool = cuda::current_pool(gpu(0));
  std::int64_t before = pool.used_bytes();
  {
    Array a = xp::ones({1000, 1000}, float32, gpu(0)), b = a + a;
    EXPECT_TRUE(pool.owns(b.storage().get()));
    EXPECT_GE(pool.used_bytes(), before + 8'000'000);
    cuda::Stream first = cuda::current_stream(gpu(0)), other(gpu(0), cuda::non_blocking);
    {
      cuda::StreamScope on(other);
      cuda::Event ready;
      ready.record(first);
      other.wait(ready);
      b = b * a;
    }
    EXPECT_EQ((a + a).sum().item<float>(), 2e6f);
  }
  for (int i = 0; i < 50; ++i) {
    Array c = xp::full({1 << 16}, i, float32, gpu(0));
    ASSERT_EQ((c * c).sum().item<double>(), static_cast<double>(i) * i * (1 << 16));
  }
  cuda::synchronize(gpu(0));
  pool.free_all_blocks();
  EXPECT_EQ(pool.used_bytes(), before);
}

TEST(Allocators, RawMemory) {
  RENSA_NEEDS_GPUS(1);
  compute_with(cuda::raw_allocator());
  EXPECT_EQ(cuda::raw_allocator()->pool(gpu(0)).total_bytes(), 0) << "nothing is kept";
}

TEST(Allocators, TheDriversPool) {
  RENSA_NEEDS_GPUS(1);
  compute_with(cuda::async_allocator());
  compute_with(cuda::async_allocator({.release_threshold = 0}));
}

TEST(Allocators, ManagedMemory) {
  RENSA_NEEDS_GPUS(1);
  compute_with(cuda::managed_allocator());
  auto scope = cuda::using_allocator(cuda::managed_allocator());
  EXPECT_EQ(cuda::current_pool(gpu(0)).report().find("cuda:0 memory pool \"managed\""), 0u)
      << "a report names the allocator";
}

TEST(Allocators, NamedPools) {
  RENSA_NEEDS_GPUS(1);
  std::int64_t outside = cuda::memory_pool(gpu(0)).used_bytes();
  Array kept;
  {
    cuda::PoolScope scope("forward", gpu(0));
    kept = xp::ones({1 << 20}, float32, gpu(0));
  }
  MemoryPool& pool = cuda::named_pool("forward", gpu(0));
  EXPECT_TRUE(pool.owns(kept.storage().get()));
  EXPECT_EQ(cuda::memory_pool(gpu(0)).used_bytes(), outside);
  EXPECT_EQ(pool.report().find("cuda:0 memory pool \"forward\""), 0u);
  cuda::drop_named_pool("forward", gpu(0));
  EXPECT_EQ(kept.sum().item<float>(), static_cast<float>(1 << 20));
  EXPECT_EQ(cuda::named_pool("forward", gpu(0)).used_bytes(), 0) << "a new one";
  cuda::drop_named_pool("forward", gpu(0));
  cuda::drop_named_pool("forward", gpu(0));
}

}  // namespace
}  // namespace rensa

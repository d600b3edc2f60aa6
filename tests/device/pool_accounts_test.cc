// What the pool counts, keeps and gives back: limits, statistics, trimming, names.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "rensa/core/error.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/pool_options.h"
#include "tests/device/fake_source.h"

namespace rensa {
namespace {

using testing::fake_stream;
using testing::FakeDevice;

using PoolAccounts = testing::PoolFixture;

TEST_F(PoolAccounts, LimitsMayBeShares) {
  EXPECT_EQ(pool.capacity(), 1_GiB);
  pool.set_limit_fraction(0.5);
  EXPECT_EQ(pool.get_limit(), 512_MiB);
  EXPECT_THROW(get(513_MiB), OutOfMemoryError);
  EXPECT_EQ(get(512_MiB)->nbytes(), 512_MiB);
  pool.set_limit("25%");
  EXPECT_EQ(pool.get_limit(), 256_MiB);
  pool.set_limit("4194304");
  EXPECT_EQ(pool.get_limit(), 4_MiB);
  for (double bad : {-0.1, 1.5, std::nan("")}) {
    EXPECT_THROW(pool.set_limit_fraction(bad), ValueError);
  }
  try {
    pool.set_limit("much");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("set_limit: \"much\""), std::string::npos);
  }
  EXPECT_EQ(pool.get_limit(), 4_MiB) << "as before the failures";
  pool.set_limit_fraction(0);
  EXPECT_EQ(pool.get_limit(), 0);
}

TEST_F(PoolAccounts, TheEnvironmentLimitsANewPool) {
  const char* outside = std::getenv("RENSA_GPU_MEMORY_LIMIT");
  std::string before = outside ? outside : "";
  setenv("RENSA_GPU_MEMORY_LIMIT", "10%", 1);
  limit_from_environment(pool);
  EXPECT_EQ(pool.get_limit(), 1_GiB / 10);
  setenv("RENSA_GPU_MEMORY_LIMIT", "ten", 1);
  EXPECT_THROW(limit_from_environment(pool), ValueError);
  outside ? setenv("RENSA_GPU_MEMORY_LIMIT", before.c_str(), 1)
          : unsetenv("RENSA_GPU_MEMORY_LIMIT");
}

TEST_F(PoolAccounts, Statistics) {
  StoragePtr a = get(3_MiB), b = get(700), c = get(5_MiB);
  c->use_on(other.get());
  device.start(other.get());
  c = StoragePtr();
  MemoryStatistics s = pool.statistics();
  EXPECT_EQ(s.used, 3_MiB + 1024);
  EXPECT_EQ(s.peak_used, 8_MiB + 1024);
  EXPECT_EQ(s.total, 12_MiB);
  EXPECT_EQ(s.cached, s.total - s.used);
  EXPECT_EQ(s.blocks, 2);
  EXPECT_EQ(s.pending_blocks, 1);
  EXPECT_EQ(s.segments, 3);
  EXPECT_EQ(s.allocations, 3);
  EXPECT_EQ(s.free_blocks, 3) << "what is left of each segment";
  EXPECT_EQ(s.largest_free, 2_MiB - 1024);
  device.finish(other.get());
  a = b = StoragePtr();
  pool.free_all_blocks();
  EXPECT_EQ(pool.peak_used_bytes(), 8_MiB + 1024);
  EXPECT_EQ(pool.peak_total_bytes(), 12_MiB);
  pool.reset_peaks();
  EXPECT_EQ(pool.peak_used_bytes(), 0);
  EXPECT_EQ(pool.peak_total_bytes(), 0);
  get(100);
  EXPECT_EQ(pool.peak_used_bytes(), 512);
  EXPECT_EQ(pool.statistics().peak_total, 2_MiB);
}

TEST_F(PoolAccounts, GrowingSizesDoNotLeaveTheirForerunnersBehind) {
  StoragePtr last = get(1_MiB);
  for (int i = 1; i <= 200; ++i) {
    StoragePtr next = get(1_MiB + i * 256_KiB);
    last = next;
  }
  // 101 MiB are in use at most; kept, all the sizes would be above 5 GiB.
  EXPECT_LT(pool.peak_total_bytes(), 320_MiB);
  EXPECT_EQ(device.counts().synchronized, 0);
  // A loop over such sizes soon asks for nothing.
  auto loop = [&] {
    for (int i = 1; i <= 200; i += 7) {
      StoragePtr a = get(1_MiB + i * 256_KiB), b = get(1_MiB + i * 128_KiB);
    }
  };
  loop();
  loop();
  std::int64_t calls = pool.n_allocations();
  for (int i = 0; i < 10; ++i) loop();
  EXPECT_EQ(pool.n_allocations(), calls);
}

TEST_F(PoolAccounts, ARetainingPoolKeepsItsSegments) {
  pool.set_retaining(true);
  StoragePtr a = get(4_MiB);
  char* data = a->data();
  a = StoragePtr();
  pool.free_all_blocks();
  pool.free_all_blocks(stream.get());
  EXPECT_EQ(pool.total_bytes(), 4_MiB);
  EXPECT_EQ(device.counts().frees, 0);
  EXPECT_EQ(get(4_MiB)->data(), data);
  EXPECT_THROW(get(1_GiB), OutOfMemoryError) << "not even when memory runs out";
  pool.set_retaining(false);
  pool.free_all_blocks();
  EXPECT_EQ(pool.total_bytes(), 0);
}

TEST_F(PoolAccounts, WhatOtherPoolsCacheIsTakenBeforeMemoryRunsOut) {
  MemoryPool second{gpu(0), device.source()};
  second.set_caching(true);
  second.malloc(800_MiB, stream.get());
  EXPECT_EQ(second.free_bytes(), 800_MiB);
  EXPECT_EQ(get(700_MiB)->nbytes(), 700_MiB);
  EXPECT_EQ(second.total_bytes(), 0);
  EXPECT_EQ(device.counts().synchronized, 0);
}

TEST_F(PoolAccounts, ANamedPoolSaysItsName) {
  pool.set_name("forward");
  EXPECT_EQ(pool.report().find("cuda:0 memory pool \"forward\"\n"), 0u);
  try {
    get(2_GiB);
    FAIL();
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(std::string(error.what()).find("out of memory on cuda:0 (pool \"forward\"): asked"),
              0u);
  }
}

TEST_F(PoolAccounts, OwnsItsBlocksAlone) {
  MemoryPool second{gpu(0), device.source()};
  StoragePtr mine = get(10), theirs = second.malloc(10, stream.get()), host = allocate(10, cpu());
  EXPECT_TRUE(pool.owns(mine.get()));
  EXPECT_FALSE(pool.owns(theirs.get()));
  EXPECT_FALSE(pool.owns(host.get()));
}

TEST_F(PoolAccounts, TheSourceIsToldWhoseOrderCounts) {
  StoragePtr a = pool.malloc(3_MiB, other.get());
  EXPECT_EQ(device.counts().allocated_on, other.get());
  a = StoragePtr();
  pool.free_all_blocks();
  EXPECT_EQ(device.counts().freed_on, other.get());
  EXPECT_EQ(device.counts().trims, 1);
  pool.set_caching(false);
  StoragePtr b = get(100);
  b = StoragePtr();
  EXPECT_EQ(device.counts().freed_on, stream.get()) << "every free, without caching";
  a = pool.malloc(3_MiB, other.get());
  pool.set_caching(true);
  other.reset();
  a = StoragePtr();
  pool.free_all_blocks();
  EXPECT_EQ(device.counts().freed_on, nullptr) << "the stream is gone";
}

TEST(PoolOptions, Limits) {
  EXPECT_EQ(parse_memory_limit("set_limit", "90%", 1000), 900);
  EXPECT_EQ(parse_memory_limit("set_limit", "12.5%", 1000), 125);
  EXPECT_EQ(parse_memory_limit("set_limit", "8589934592", 1000), 8_GiB);
  EXPECT_EQ(parse_memory_limit("set_limit", "0", 1000), 0);
  for (const char* bad : {"", "%", "lots", "-1", "101%", "5GB", "nan", "inf%", "1e300"}) {
    EXPECT_THROW(parse_memory_limit("set_limit", bad, 1000), ValueError) << bad;
  }
}

}  // namespace
}  // namespace rensa

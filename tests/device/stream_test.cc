// Streams, events and memory of a real device.
#include "rensa/device/stream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/device/device_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/operations.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Operand bytes_of(const StoragePtr& storage) {
  Operand operand;
  operand.view.data = storage->data();
  operand.view.dtype = uint8;
  operand.view.device = storage->device();
  operand.view.shape = {storage->nbytes()};
  operand.view.strides = {1};
  operand.storage = storage.get();
  return operand;
}

void copy(const StoragePtr& from, const StoragePtr& to) {
  Transfer transfer;
  transfer.in = bytes_of(from);
  transfer.out = bytes_of(to);
  launch(transfer);
}

void fill(const StoragePtr& storage) {
  for (std::int64_t i = 0; i < storage->nbytes(); ++i)
    storage->data()[i] = static_cast<char>(i * 7);
}

bool same(const StoragePtr& a, const StoragePtr& b) {
  return std::memcmp(a->data(), b->data(), static_cast<std::size_t>(a->nbytes())) == 0;
}

TEST(Stream, TheCurrentStreamIsAThreadsOwn) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream usual = cuda::current_stream(gpu(0)), mine(gpu(0), cuda::non_blocking);
  EXPECT_NE(usual, mine);
  {
    cuda::StreamScope scope(mine);
    EXPECT_EQ(cuda::current_stream(gpu(0)), mine);
    std::thread elsewhere([&] { EXPECT_EQ(cuda::current_stream(gpu(0)), usual); });
    elsewhere.join();
  }
  EXPECT_EQ(cuda::current_stream(gpu(0)), usual);
  EXPECT_EQ(cuda::Stream::null(gpu(0)), cuda::Stream::null(gpu(0)));
}

TEST(Stream, WaitsAreCounted) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream(gpu(0), cuda::non_blocking);
  cuda::Event start, stop;
  EXPECT_TRUE(stop.done()) << "nothing recorded";
  stream.record(start);
  stream.record(stop);
  cuda::current_stream(gpu(0)).wait(stop);
  std::int64_t before = cuda::sync_count();
  stop.synchronize();
  stream.synchronize();
  cuda::synchronize(gpu(0));
  EXPECT_EQ(cuda::sync_count(), before + 3);
  EXPECT_TRUE(stream.done());
  EXPECT_TRUE(stop.done());
  EXPECT_GE(cuda::elapsed_time(start, stop), 0.f);
  EXPECT_EQ(cuda::sync_count(), before + 3);
}

TEST(Stream, AReportedErrorIsThrownAtTheNextWaitAndOnce) {
  RENSA_NEEDS_GPUS(1);
  cuda::ErrorWord& word = *cuda::device_state(gpu(0)).error_word;
  word = {1, cuda::error_operation("getitem"), 12, 10};
  try {
    cuda::synchronize(gpu(0));
    FAIL();
  } catch (const IndexError& error) {
    EXPECT_EQ(
        std::string(error.what())
            .find("getitem: index 12 is out of bounds for an axis of size 10 (reported by cuda:0"),
        0u)
        << error.what();
  }
  cuda::synchronize(gpu(0));
}

TEST(Transfer, PinnedMemoryDoesNotWait) {
  RENSA_NEEDS_GPUS(1);
  constexpr std::int64_t kBytes = 5'000'000;
  StoragePtr host = allocate_pinned(kBytes), back = allocate_pinned(kBytes);
  StoragePtr device = allocate(kBytes, gpu(0));
  fill(host);
  std::int64_t before = cuda::sync_count();
  copy(host, device);
  copy(device, back);
  EXPECT_EQ(cuda::sync_count(), before);
  cuda::synchronize(gpu(0));
  EXPECT_TRUE(same(host, back));
}

TEST(Transfer, PageableMemoryIsCounted) {
  RENSA_NEEDS_GPUS(1);
  for (std::int64_t nbytes : {1ll, 1000ll, 4ll << 20, (4ll << 20) + 1, 33'000'001ll}) {
    StoragePtr host = allocate(nbytes, cpu()), back = allocate(nbytes, cpu());
    StoragePtr device = allocate(nbytes, gpu(0));
    fill(host);
    std::int64_t before = cuda::sync_count();
    copy(host, device);
    copy(device, back);
    EXPECT_EQ(cuda::sync_count(), before + 2);
    EXPECT_TRUE(same(host, back)) << nbytes;
  }
}

TEST(Transfer, APinnedBlockIsNotReusedWhileItIsCopied) {
  RENSA_NEEDS_GPUS(1);
  constexpr std::int64_t kBytes = 32 << 20;
  StoragePtr expected = allocate(kBytes, cpu()), back = allocate(kBytes, cpu());
  fill(expected);
  for (int round = 0; round < 5; ++round) {
    StoragePtr device = allocate(kBytes, gpu(0));
    {
      StoragePtr host = allocate_pinned(kBytes);
      fill(host);
      copy(host, device);
    }
    StoragePtr next = allocate_pinned(kBytes);  // must be other memory while the copy runs
    std::memset(next->data(), 0, kBytes);
    copy(device, back);
    ASSERT_TRUE(same(expected, back));
  }
}

TEST(Transfer, BetweenGpusBothStreamsAreOrdered) {
  RENSA_NEEDS_GPUS(2);
  constexpr std::int64_t kBytes = 16 << 20;
  StoragePtr host = allocate_pinned(kBytes), back = allocate_pinned(kBytes);
  StoragePtr zeros = allocate_pinned(kBytes);
  fill(host);
  std::memset(zeros->data(), 0, kBytes);
  for (int round = 0; round < 50; ++round) {
    StoragePtr a = allocate(kBytes, gpu(0)), b = allocate(kBytes, gpu(1));
    std::int64_t before = cuda::sync_count();
    copy(host, a);
    copy(a, b);
    copy(zeros, a);  // after the copy has read it
    copy(b, back);
    EXPECT_EQ(cuda::sync_count(), before);
    cuda::synchronize(gpu(1));
    ASSERT_TRUE(same(host, back)) << round;
  }
}

TEST(DevicePool, ServesCurrentStreamsAndSurvivesThem) {
  RENSA_NEEDS_GPUS(1);
  auto& pool = cuda::memory_pool(gpu(0));
  StoragePtr kept;
  {
    cuda::Stream stream(gpu(0), cuda::non_blocking);
    cuda::StreamScope scope(stream);
    kept = allocate(1000, gpu(0));
    EXPECT_EQ(kept->home_stream(), stream.state());
  }
  std::int64_t used = pool.used_bytes();
  kept = StoragePtr();
  EXPECT_LT(pool.used_bytes(), used);
  EXPECT_GE(pool.total_bytes(), pool.used_bytes());
  EXPECT_NE(pool.report().find("cuda:0 memory pool"), std::string::npos);
}

TEST(DevicePool, AnAllocatorScopeTakesAnotherPool) {
  RENSA_NEEDS_GPUS(1);
  StoragePtr survivor;
  {
    auto mine = cuda::make_memory_pool(gpu(0));
    cuda::AllocatorScope scope(*mine);
    survivor = allocate(3000, gpu(0));
    EXPECT_GE(mine->used_bytes(), 3000);
  }
  EXPECT_EQ(survivor->nbytes(), 3000);
}

TEST(DevicePool, BeyondTheLimitIsAnErrorAndLifeGoesOn) {
  RENSA_NEEDS_GPUS(1);
  auto& pool = cuda::memory_pool(gpu(0));
  EXPECT_THROW(allocate(std::int64_t{1} << 45, gpu(0)), OutOfMemoryError);
  std::int64_t before = pool.get_limit();
  pool.free_all_blocks();
  pool.set_limit(pool.total_bytes() + (1 << 20));
  EXPECT_THROW(allocate(64 << 20, gpu(0)), OutOfMemoryError);
  pool.set_limit(before);
  StoragePtr device = allocate(64 << 20, gpu(0)), host = allocate(100, cpu());
  EXPECT_EQ(device->nbytes(), 64 << 20);
  cuda::MemoryInfo info = cuda::mem_info(gpu(0));
  EXPECT_GT(info.total, info.free);
}

}  // namespace
}  // namespace rensa

// Streams, events and memory of a real device.
#include "rensa/device/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/allocators.h"
#include "rensa/device/device_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/memory_pool.h"
#include "rensa/operations/transfer/transfer.h"
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
  operations::Transfer transfer;
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

TEST(Stream, PrioritiesAndKinds) {
  RENSA_NEEDS_GPUS(1);
  cuda::PriorityRange range = cuda::Stream::priority_range(gpu(0));
  EXPECT_LE(range.first, range.last);
  cuda::Stream first(gpu(0), cuda::non_blocking, range.first), usual(gpu(0));
  EXPECT_EQ(first.priority(), range.first);
  EXPECT_TRUE(first.is_non_blocking());
  EXPECT_EQ(usual.priority(), 0);
  EXPECT_FALSE(usual.is_non_blocking());
}

TEST(Stream, OneThatSomebodyElseMade) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream theirs(gpu(0), cuda::non_blocking);
  {
    cuda::Stream ours = cuda::Stream::external(theirs.handle(), gpu(0));
    EXPECT_EQ(ours, theirs) << "the same stream of the driver";
    EXPECT_EQ(cuda::Stream::external(theirs.handle(), gpu(0)).state(), ours.state());
    cuda::StreamScope on(ours);
    Array a = xp::full({1000}, 3, float32, gpu(0));
    EXPECT_EQ(a.storage()->home_stream(), ours.state());
    EXPECT_EQ((a * a).sum().item<float>(), 9000.f);
  }
  theirs.synchronize();  // it is still there
  EXPECT_TRUE(theirs.done());
}

TEST(Stream, AThreadsOwnDefault) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream shared = cuda::current_stream(gpu(0));
  cuda::Stream mine = cuda::Stream::per_thread(gpu(0));
  EXPECT_EQ(mine, cuda::Stream::per_thread(gpu(0)));
  EXPECT_NE(mine, shared);
  cuda::set_per_thread_streams(true);
  EXPECT_EQ(cuda::current_stream(gpu(0)), mine);
  EXPECT_EQ(cuda::current_stream_state(gpu(0)), mine.state());
  std::thread elsewhere([&] {
    EXPECT_NE(cuda::current_stream(gpu(0)), mine);
    EXPECT_NE(cuda::current_stream(gpu(0)), shared);
    EXPECT_EQ(xp::ones({10}, float32, gpu(0)).sum().item<float>(), 10.f);
  });
  elsewhere.join();
  cuda::set_per_thread_streams(false);
  EXPECT_EQ(cuda::current_stream(gpu(0)), shared);
}

TEST(Stream, HostFunctionsRunInOrder) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream(gpu(0), cuda::non_blocking);
  std::atomic<int> seen{0};
  std::int64_t before = cuda::sync_count();
  for (int i = 0; i < 10; ++i) {
    stream.launch_host_func([&seen, i] { seen = seen == i ? i + 1 : -100; });
  }
  EXPECT_EQ(cuda::sync_count(), before);
  stream.synchronize();
  EXPECT_EQ(seen, 10);
  stream.launch_host_func([] { throw std::runtime_error("from the host function"); });
  stream.launch_host_func([&] { seen = 11; });
  try {
    stream.synchronize();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from the host function");
  }
  EXPECT_EQ(seen, 11) << "the stream goes on";
  stream.synchronize();
}

TEST(Stream, EventsOfEveryKind) {
  RENSA_NEEDS_GPUS(1);
  cuda::Event usual, untimed(false), sleeping({.blocking = true});
  cuda::Event shared({.timing = false, .interprocess = true});
  EXPECT_THROW(cuda::Event({.interprocess = true}), ValueError);
  EXPECT_THROW(shared.ipc_handle(), ValueError) << "not recorded";
  for (const cuda::Event* event : {&usual, &untimed, &sleeping, &shared}) {
    event->record(gpu(0));
    event->synchronize();
    EXPECT_TRUE(event->done());
  }
  try {
    EXPECT_EQ(shared.ipc_handle().size(), 64u);
  } catch (const CudaError& error) {  // some containers lack it
    EXPECT_NE(std::string(error.what()).find("cudaIpcGetEventHandle"), std::string::npos);
  }
  EXPECT_THROW(usual.ipc_handle(), ValueError);
  EXPECT_THROW(cuda::elapsed_time(usual, untimed), ValueError);
  EXPECT_GE(cuda::elapsed_time(usual, sleeping), 0.f);
}

TEST(ForbidSync, AWaitThrowsAndNamesTheOperation) {
  std::int64_t before = cuda::sync_count();
  {
    cuda::ForbidSync strict;
    try {
      cuda::count_sync("item");
      FAIL();
    } catch (const SyncError& error) {
      EXPECT_EQ(std::string(error.what()),
                "item waits for the device, which cuda::ForbidSync forbids here");
    }
    EXPECT_EQ(cuda::sync_count(), before) << "it has not waited";
    {
      cuda::AllowSync relaxed;
      cuda::count_sync("item");
      cuda::ForbidSync again;
      EXPECT_THROW(cuda::count_sync("item"), SyncError);
    }
    EXPECT_THROW(cuda::count_sync("item"), SyncError);
    std::thread elsewhere([] { cuda::count_sync("item"); });  // a thread's own
    elsewhere.join();
  }
  cuda::count_sync("item");
  EXPECT_EQ(cuda::sync_count(), before + 3);
}

TEST(ForbidSync, TheCpuHasNothingToWaitFor) {
  cuda::ForbidSync strict;
  Array a = xp::ones({4}, float32, cpu());
  EXPECT_EQ(a.sum().item<float>(), 4.f);
  EXPECT_EQ(a.to_vector<float>().size(), 4u);
  cuda::synchronize(cpu());
}

TEST(ForbidSync, FindsTheHiddenWaits) {
  RENSA_NEEDS_GPUS(1);
  Array a = xp::ones({4}, float32, gpu(0)), b;
  {
    cuda::ForbidSync strict;
    b = xp::exp(a) + a;
    EXPECT_THROW(b.sum().item<float>(), SyncError);
    EXPECT_THROW(b.to_vector<float>(), SyncError);
    EXPECT_THROW(b.str(), SyncError);
    EXPECT_THROW(cuda::synchronize(gpu(0)), SyncError);
    EXPECT_THROW(cuda::current_stream(gpu(0)).synchronize(), SyncError);
  }
  EXPECT_NEAR(b.sum().item<float>(), 4 * 3.7182817f, 1e-4);
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

// The memory pool over a source that counts: what is cut, merged, reused, waited for and given
// back.
#include "rensa/device/memory_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/device/pool_blocks.h"
#include "tests/device/fake_source.h"

namespace rensa {
namespace {

using testing::fake_stream;
using testing::FakeDevice;

using MemoryPoolTest = testing::PoolFixture;

TEST_F(MemoryPoolTest, BlocksAreWhatWasAskedFor) {
  for (std::int64_t nbytes : {0, 1, 511, 512, 513, 1 << 20, (1 << 20) + 1, 3 << 20}) {
    StoragePtr block = get(nbytes);
    EXPECT_EQ(block->nbytes(), nbytes);
    EXPECT_EQ(block->device(), gpu(0));
    EXPECT_EQ(block->home_stream(), stream.get());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % 16, 0u);
    EXPECT_EQ(block->use_count(), 1);
    std::memset(block->data(), 1, static_cast<std::size_t>(std::max<std::int64_t>(nbytes, 1)));
  }
}

TEST_F(MemoryPoolTest, SizesAreRoundedAndCounted) {
  StoragePtr a = get(1), b = get(513);
  EXPECT_EQ(pool.used_bytes(), 512 + 1024);
  EXPECT_EQ(pool.total_bytes(), 2_MiB);
  EXPECT_EQ(pool.free_bytes(), 2_MiB - 1536);
  EXPECT_EQ(pool.n_allocations(), 1);
  EXPECT_EQ(b->data() - a->data(), 512);
  a = b = StoragePtr();
  EXPECT_EQ(pool.used_bytes(), 0);
  EXPECT_EQ(pool.n_free_blocks(), 1) << "neighbours merge";
  pool.free_all_blocks();
  EXPECT_EQ(pool.total_bytes(), 0);
  EXPECT_EQ(device.counts().bytes, 0);
}

TEST_F(MemoryPoolTest, FreedBlocksMergeWithBothNeighbours) {
  StoragePtr a = get(1024), b = get(1024), c = get(1024), d = get(1024);
  char* start = a->data();
  a = StoragePtr();
  c = StoragePtr();
  EXPECT_EQ(pool.n_free_blocks(), 3) << "a, c and the rest of the segment";
  b = StoragePtr();
  EXPECT_EQ(pool.n_free_blocks(), 2);
  EXPECT_EQ(get(3072)->data(), start);
}

TEST_F(MemoryPoolTest, TheBestFitIsTaken) {
  std::vector<StoragePtr> blocks;
  std::vector<char*> holes;
  for (std::int64_t kib : {64, 16, 48, 32}) {
    blocks.push_back(get(kib * 1024));
    holes.push_back(blocks.back()->data());
    blocks.push_back(get(512));  // keeps the holes apart
  }
  for (std::size_t i = 0; i < 8; i += 2) blocks[i] = StoragePtr();
  StoragePtr a = get(47 * 1024), b = get(30 * 1024), c = get(16 * 1024);
  EXPECT_EQ(a->data(), holes[2]);
  EXPECT_EQ(b->data(), holes[3]);
  EXPECT_EQ(c->data(), holes[1]);
}

TEST_F(MemoryPoolTest, SmallAndLargeRequestsHaveSegmentsOfTheirOwn) {
  StoragePtr large = get(8_MiB);
  large = StoragePtr();
  StoragePtr small = get(1000);
  EXPECT_EQ(pool.total_bytes(), 10_MiB);
  StoragePtr again = get(8_MiB);
  EXPECT_EQ(pool.n_allocations(), 2);
}

TEST_F(MemoryPoolTest, SmallSegmentsGrowUpToABound) {
  std::vector<StoragePtr> blocks;
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < 400; ++i) {
    std::int64_t before = pool.total_bytes();
    blocks.push_back(get(512_KiB));
    if (pool.total_bytes() > before) sizes.push_back(pool.total_bytes() - before);
  }
  EXPECT_EQ(sizes, std::vector<std::int64_t>({2_MiB, 2_MiB, 4_MiB, 8_MiB, 16_MiB, 32_MiB, 32_MiB,
                                              32_MiB, 32_MiB, 32_MiB, 32_MiB}));
}

TEST_F(MemoryPoolTest, ALargeBlockIsCutOnlyWhereTheRestIsOfUse) {
  StoragePtr a = get(10_MiB);
  char* start = a->data();
  a = StoragePtr();
  a = get(9_MiB + 512_KiB);  // 512 KiB would be of no use
  EXPECT_EQ(pool.used_bytes(), 10_MiB);
  a = StoragePtr();
  a = get(3_MiB);
  StoragePtr b = get(7_MiB);
  EXPECT_EQ(a->data(), start);
  EXPECT_EQ(b->data(), start + 3_MiB);
  EXPECT_EQ(pool.used_bytes(), 10_MiB);
}

TEST_F(MemoryPoolTest, APreciousBlockIsNotCutWhileTheDriverHasMemory) {
  StoragePtr big = get(512_MiB);
  char* start = big->data();
  big = StoragePtr();
  StoragePtr a = get(128_MiB);
  EXPECT_EQ(pool.total_bytes(), 640_MiB);
  StoragePtr b = get(256_MiB);  // more than a quarter
  EXPECT_EQ(b->data(), start);
  b = StoragePtr();
  device.fail_allocations(true);
  StoragePtr c = get(100_MiB);
  EXPECT_EQ(c->data(), start);
}

TEST_F(MemoryPoolTest, ALimitHolds) {
  pool.set_limit(8_MiB);
  EXPECT_EQ(pool.get_limit(), 8_MiB);
  StoragePtr a = get(4_MiB), b = get(4_MiB);
  EXPECT_THROW(get(512), OutOfMemoryError);
  a = StoragePtr();
  StoragePtr c = get(1000);  // the free segment goes back to make room
  EXPECT_LE(pool.total_bytes(), 8_MiB);
  c = b = StoragePtr();
  EXPECT_EQ(get(8_MiB)->nbytes(), 8_MiB);
  pool.set_limit(0);
  EXPECT_EQ(get(100_MiB)->nbytes(), 100_MiB);
  EXPECT_THROW(pool.set_limit(-1), ValueError);
}

TEST_F(MemoryPoolTest, ALimitThatIsNoMultipleOfASegmentIsUsedUp) {
  pool.set_limit(1_MiB + 512);
  StoragePtr a = get(1_MiB), b = get(512);
  EXPECT_EQ(pool.total_bytes(), 1_MiB + 512);
}

TEST_F(MemoryPoolTest, TheLadderFreesOtherArenasAndWaits) {
  StoragePtr mine = get(300_MiB), theirs = pool.malloc(400_MiB, other.get());
  mine = theirs = StoragePtr();
  EXPECT_EQ(get(500_MiB)->nbytes(), 500_MiB) << "its own arena's segment is enough";
  EXPECT_EQ(get(900_MiB)->nbytes(), 900_MiB) << "every arena's";
  StoragePtr used = get(900_MiB);
  device.start(other.get());
  used->use_on(other.get());
  used = StoragePtr();
  EXPECT_EQ(get(1_GiB)->nbytes(), 1_GiB);
  EXPECT_EQ(device.counts().synchronized, 1) << "the block was waited for";
}

TEST_F(MemoryPoolTest, OutOfMemorySaysWhatThereIs) {
  StoragePtr a = get(600_MiB), b = get(3_MiB), c = get(3_MiB), d = get(100);
  pool.set_limit(900_MiB);
  std::string text;
  try {
    get(500_MiB);
  } catch (const OutOfMemoryError& error) {
    text = error.what();
  }
  for (const char* part : {"cuda:0", "asked for 500.00 MiB (524288000 bytes)", "used 606.00 MiB",
                           "limit 900.00 MiB", "largest free block 2.00 MiB",
                           "biggest holders: 1 x 600.00 MiB, 2 x 3.00 MiB, 1 x 512 bytes"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(get(200_MiB)->nbytes(), 200_MiB) << "the pool goes on";
  EXPECT_THROW(get(std::int64_t{1} << 62), OutOfMemoryError);
  EXPECT_THROW(get(-1), OutOfMemoryError);
}

TEST_F(MemoryPoolTest, Report) {
  StoragePtr a = get(3_MiB), b = get(700);
  pool.set_limit(64_MiB);
  EXPECT_EQ(pool.report(),
            "cuda:0 memory pool\n"
            "  used    3.00 MiB in 2 blocks, 3.00 MiB at most\n"
            "  cached  3.00 MiB in 2 free blocks, the largest 2.00 MiB; 0 blocks wait for other "
            "streams\n"
            "  total   6.00 MiB in 2 segments, 6.00 MiB at most, limit 64.00 MiB; the driver was "
            "asked 2 times\n"
            "  biggest holders: 1 x 3.00 MiB, 1 x 1.00 KiB\n");
}

TEST_F(MemoryPoolTest, StreamsDoNotShareFreeBlocks) {
  StoragePtr a = get(1000);
  char* data = a->data();
  a = StoragePtr();
  EXPECT_NE(pool.malloc(1000, other.get())->data(), data);
  EXPECT_EQ(get(1000)->data(), data);
  pool.free_all_blocks(other.get());
  EXPECT_EQ(pool.total_bytes(), 2_MiB);
}

TEST_F(MemoryPoolTest, ABlockUsedOnAnotherStreamWaitsForIt) {
  StoragePtr a = get(4_MiB);
  char* data = a->data();
  device.start(other.get());
  a->use_on(stream.get());
  a->use_on(other.get());
  a->use_on(other.get());
  a = StoragePtr();
  EXPECT_EQ(device.counts().tickets, 1);
  EXPECT_EQ(pool.used_bytes(), 0);
  EXPECT_NE(pool.report().find("1 blocks wait for other streams"), std::string::npos);
  StoragePtr b = get(4_MiB);
  EXPECT_NE(b->data(), data);
  device.finish(other.get());
  StoragePtr c = get(4_MiB);
  EXPECT_EQ(c->data(), data);
  EXPECT_EQ(device.counts().discarded, 1);
  c = StoragePtr();  // nobody else has used it since
  EXPECT_EQ(device.counts().tickets, 1);
  EXPECT_EQ(get(4_MiB)->data(), data);
}

// Whoever had the memory before may still have work queued on the home stream.
TEST_F(MemoryPoolTest, TheFirstUseOnAnotherStreamComesAfterTheHomeStreamsWork) {
  StoragePtr a = get(4_MiB);
  a->use_on(stream.get());
  EXPECT_EQ(device.counts().orders, 0);
  a->use_on(other.get());
  EXPECT_EQ(device.counts().orders, 1);
  EXPECT_EQ(device.counts().earlier, stream.get());
  EXPECT_EQ(device.counts().later, other.get());
  a->use_on(stream.get());
  a->use_on(other.get());
  EXPECT_EQ(device.counts().orders, 1);
  auto third = fake_stream();
  a->use_on(third.get());
  a->use_on(other.get());
  a->use_on(third.get());
  EXPECT_EQ(device.counts().orders, 2);
  a = StoragePtr();
  a = get(4_MiB);              // the same memory, for somebody new
  device.refuse_orders(true);  // as a capture does
  a->use_on(other.get());
  a->use_on(other.get());
  EXPECT_EQ(device.counts().orders, 2);
  device.refuse_orders(false);
  a->use_on(other.get());
  EXPECT_EQ(device.counts().orders, 3);
}

TEST_F(MemoryPoolTest, PendingBlocksAreFoundByLaterFrees) {
  StoragePtr a = get(1000);
  a->use_on(other.get());
  device.start(other.get());
  a = StoragePtr();
  device.finish(other.get());
  for (int i = 0; i < 20; ++i) get(1000);
  EXPECT_EQ(device.counts().discarded, 1);
  EXPECT_EQ(pool.n_free_blocks(), 1);
}

TEST_F(MemoryPoolTest, AStreamThatEndsLeavesItsMemoryToAll) {
  StoragePtr a = pool.malloc(4_MiB, other.get());
  char* data = a->data();
  std::weak_ptr<cuda::StreamState> watch = other;
  device.start(other.get());
  other.reset();
  EXPECT_FALSE(watch.expired()) << "a block of it is alive";
  cuda::StreamState* gone = watch.lock().get();
  a = StoragePtr();
  EXPECT_TRUE(watch.expired());
  StoragePtr b = get(4_MiB);
  EXPECT_NE(b->data(), data) << "its work still runs";
  device.finish(gone);
  StoragePtr c = get(4_MiB);
  EXPECT_EQ(c->data(), data);
  c = StoragePtr();
  EXPECT_EQ(get(4_MiB)->data(), data) << "it is this stream's own now";
}

TEST_F(MemoryPoolTest, SharedMemoryGoesBackInTheOrderOfWhoUsedIt) {
  StoragePtr a = pool.malloc(4_MiB, other.get());
  a = StoragePtr();
  a = pool.malloc(2_MiB, other.get());  // half of the segment stays in use
  pool.release_stream(other.get());
  std::int64_t total = pool.total_bytes();
  StoragePtr d = get(2_MiB);
  EXPECT_EQ(pool.total_bytes(), total) << "the other half";
  char* data = d->data();
  device.start(stream.get());
  d = StoragePtr();
  auto third = fake_stream();
  StoragePtr e = pool.malloc(2_MiB, third.get());
  EXPECT_NE(e->data(), data);
  device.finish(stream.get());
  EXPECT_EQ(pool.malloc(2_MiB, third.get())->data(), data);
}

TEST_F(MemoryPoolTest, ManyStreamsComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    auto passing = fake_stream();
    StoragePtr a = pool.malloc(5_MiB, passing.get()), b = pool.malloc(700, passing.get());
  }
  EXPECT_LE(pool.total_bytes(), 8_MiB);
}

TEST(MemoryPoolLife, BlocksMayOutliveTheirPool) {
  FakeDevice device;
  auto stream = fake_stream(), other = fake_stream();
  StoragePtr a, b;
  {
    MemoryPool pool(gpu(0), device.source());
    a = pool.malloc(3_MiB, stream.get());
    b = pool.malloc(700, stream.get());
    StoragePtr c = pool.malloc(30_MiB, stream.get());
  }
  std::memset(a->data(), 1, 3_MiB);
  a = StoragePtr();
  device.start(other.get());
  b->use_on(other.get());
  EXPECT_GT(device.counts().bytes, 0);
  b = StoragePtr();
  EXPECT_EQ(device.counts().bytes, 0);
  EXPECT_EQ(device.counts().tickets, device.counts().discarded);
}

// --- hooks and modes ---

class Diary final : public MemoryHook {
 public:
  void alloc_preprocess(const MemoryEvent& e) override { note("alloc<", e); }
  void alloc_postprocess(const MemoryEvent& e) override { note("alloc>", e); }
  void malloc_preprocess(const MemoryEvent& e) override { note("malloc<", e); }
  void malloc_postprocess(const MemoryEvent& e) override { note("malloc>", e); }
  void free_preprocess(const MemoryEvent& e) override { note("free<", e); }
  void free_postprocess(const MemoryEvent& e) override { note("free>", e); }
  std::string text;

 private:
  void note(const char* what, const MemoryEvent& e) {
    text += std::string(what) + std::to_string(e.size) + "/" + std::to_string(e.rounded_size) +
            (e.data ? "* " : " ");
  }
};

TEST_F(MemoryPoolTest, HooksSeeEachCall) {
  Diary diary, inner;
  {
    MemoryHookScope scope(diary);
    StoragePtr a = get(700);
    {
      MemoryHookScope scope2(inner);
      get(100);
    }
    std::thread elsewhere([&] { pool.malloc(9, other.get()); });  // hooks are a thread's own
    elsewhere.join();
  }
  get(5);
  EXPECT_EQ(diary.text,
            "malloc<700/1024 alloc<700/2097152 alloc>700/2097152* malloc>700/1024* "
            "malloc<100/512 malloc>100/512* free<100/512* free>100/512* "
            "free<700/1024* free>700/1024* ");
  EXPECT_EQ(inner.text, "malloc<100/512 malloc>100/512* free<100/512* free>100/512* ");
}

class Veto final : public MemoryHook {
  void alloc_postprocess(const MemoryEvent&) override { throw ValueError("no more"); }
};

TEST_F(MemoryPoolTest, AHookThatThrowsLosesNothing) {
  Veto veto;
  {
    MemoryHookScope scope(veto);
    EXPECT_THROW(get(700), ValueError);
  }
  EXPECT_EQ(pool.total_bytes(), 0);
  EXPECT_EQ(device.counts().bytes, 0);
  EXPECT_EQ(get(700)->nbytes(), 700);
}

TEST_F(MemoryPoolTest, PoisonedBlocksShow) {
  pool.set_poison(true);
  StoragePtr a = get(1000), keep = get(1000);
  std::memset(a->data(), 0, 1000);
  char* data = a->data();
  a = StoragePtr();
  EXPECT_EQ(data[0], '\xff');
  EXPECT_EQ(data[999], '\xff');
  EXPECT_EQ(device.counts().poisoned, 1);
  device.start(other.get());
  keep->use_on(other.get());
  keep = StoragePtr();
  EXPECT_EQ(device.counts().poisoned, 1) << "the other stream still reads it";
  device.finish(other.get());
  get(1000);
  get(5_MiB);
  EXPECT_GE(device.counts().poisoned, 3);
}

TEST_F(MemoryPoolTest, WithoutCachingEachCallReachesTheDriver) {
  get(700);
  pool.set_caching(false);
  pool.set_poison(true);
  EXPECT_EQ(device.counts().bytes, 0);
  for (int i = 0; i < 3; ++i) {
    StoragePtr a = get(701);
    EXPECT_EQ(device.counts().last_size, 701) << "exactly what was asked, for the checkers";
    EXPECT_EQ(pool.used_bytes(), 1024);
  }
  EXPECT_EQ(device.counts().last_poisoned, 701) << "no byte behind what the driver gave";
  EXPECT_EQ(device.counts().allocations, 4);
  EXPECT_EQ(device.counts().frees, 4);
  EXPECT_EQ(pool.total_bytes(), 0);
}

TEST(PinnedPool, RequestsAreNotDoubled) {
  FakeDevice device;
  MemoryPool pool(cpu(), device.source(), true);
  pool.set_caching(true);
  StoragePtr big = pool.malloc(300_MiB + 5, nullptr);
  EXPECT_EQ(pool.used_bytes(), 300_MiB + 512) << "no power of two";
  EXPECT_EQ(pool.total_bytes(), 302_MiB);
  big = StoragePtr();
  StoragePtr half = pool.malloc(150_MiB, nullptr), rest = pool.malloc(152_MiB, nullptr);
  EXPECT_EQ(pool.n_allocations(), 1) << "best fit and cut, as on a device";
  MemoryStatistics s = pool.statistics();
  EXPECT_EQ(s.used, 302_MiB);
  EXPECT_EQ(s.blocks, 2);
}

TEST(PinnedPool, ABlockWaitsForTheStreamThatCopiesFromIt) {
  FakeDevice device;
  auto stream = fake_stream();
  MemoryPool pool(cpu(), device.source(), true);
  pool.set_caching(true);
  StoragePtr a = pool.malloc(3000, nullptr);
  EXPECT_TRUE(a->is_pinned());
  EXPECT_EQ(a->device(), cpu());
  EXPECT_EQ(pool.used_bytes(), 3072) << "no doubling to a power of two";
  char* data = a->data();
  device.start(stream.get());
  a->use_on(stream.get());
  a = StoragePtr();
  a = pool.malloc(3000, nullptr);
  EXPECT_NE(a->data(), data);
  device.finish(stream.get());
  pool.malloc(3_MiB, nullptr);  // nothing fits: the waiting ones are looked at
  StoragePtr b = pool.malloc(3000, nullptr);
  EXPECT_EQ(b->data(), data);
  EXPECT_NE(pool.report().find("pinned host memory pool"), std::string::npos);
}

// --- long runs ---

TEST_F(MemoryPoolTest, ASteadyLoopStopsAskingTheDriver) {
  std::mt19937 random(1);
  std::vector<std::int64_t> sizes(60);
  for (auto& size : sizes) size = std::int64_t{1} << (random() % 24), size += random() % size;
  auto step = [&] {
    std::vector<StoragePtr> alive;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      alive.push_back(get(sizes[i]));
      if (i % 3 == 0) alive[i / 3] = StoragePtr();
    }
  };
  step();
  step();
  std::int64_t calls = pool.n_allocations(), total = pool.total_bytes();
  for (int i = 0; i < 200; ++i) step();
  EXPECT_EQ(pool.n_allocations(), calls);
  EXPECT_EQ(pool.total_bytes(), total);
}

TEST_F(MemoryPoolTest, BlocksNeverOverlap) {
  std::mt19937 random(2);
  struct Held {
    StoragePtr block;
    unsigned char mark;
  };
  std::vector<Held> held(200);
  for (int i = 0; i < 6000; ++i) {
    Held& slot = held[random() % held.size()];
    if (slot.block) {
      auto n = static_cast<std::size_t>(slot.block->nbytes());
      ASSERT_EQ(static_cast<unsigned char>(slot.block->data()[0]), slot.mark);
      ASSERT_EQ(static_cast<unsigned char>(slot.block->data()[n - 1]), slot.mark);
      slot.block = StoragePtr();
    }
    std::int64_t size = 1 + random() % (std::int64_t{1} << (9 + random() % 12));
    slot = {pool.malloc(size, (random() & 1 ? stream : other).get()),
            static_cast<unsigned char>(random())};
    std::memset(slot.block->data(), slot.mark, static_cast<std::size_t>(size));
  }
  held.clear();
  EXPECT_EQ(pool.used_bytes(), 0);
  pool.free_all_blocks();
  EXPECT_EQ(pool.total_bytes(), 0) << "everything has merged back into whole segments";
}

TEST_F(MemoryPoolTest, ThreadsAllocateAndFreeEachOthersBlocks) {
  constexpr int kThreads = 4, kSteps = 3000;
  struct Slot {
    std::mutex mutex;
    StoragePtr block;
  };
  std::vector<Slot> slots(64);
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    auto mine = fake_stream();
    for (int i = 0; i < kSteps; ++i) {
      StoragePtr fresh = pool.malloc(1 + random() % 100000, mine.get());
      fresh->data()[0] = 1;
      if (random() % 4 == 0) fresh->use_on(stream.get());
      Slot& slot = slots[random() % slots.size()];
      std::lock_guard<std::mutex> hold(slot.mutex);
      std::swap(slot.block, fresh);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (int i = 0; i < 300; ++i) {
    EXPECT_GE(pool.free_bytes(), 0);
    if (i % 100 == 0) pool.free_all_blocks();
    EXPECT_FALSE(pool.report().empty());
    device.start(stream.get());
    std::this_thread::yield();
    device.finish(stream.get());
  }
  for (auto& thread : threads) thread.join();
  slots.clear();
  pool.free_all_blocks();
  EXPECT_EQ(pool.used_bytes(), 0);
  EXPECT_EQ(pool.total_bytes(), 0);
  EXPECT_EQ(device.counts().tickets, device.counts().discarded);
}

// --- pieces ---

TEST(FreeIndex, FindsWhatFitsOverAllSizes) {
  std::mt19937_64 random(3);
  std::vector<pool::Block> blocks(300);
  pool::FreeIndex index;
  for (auto& block : blocks) {
    block.size = static_cast<std::int64_t>(1 + random() % (1ull << (1 + random() % 38))) * 512;
    index.insert(&block);
  }
  for (int i = 0; i < 2000; ++i) {
    std::int64_t size =
        static_cast<std::int64_t>(1 + random() % (1ull << (1 + random() % 38))) * 512;
    pool::Block* found = index.find(size);
    std::int64_t best = 0, most = 0;
    for (auto& block : blocks) {
      if (block.size >= size && (best == 0 || block.size < best)) best = block.size;
      most = std::max(most, block.size);
    }
    ASSERT_EQ(index.largest()->size, most);
    if (best == 0) {
      ASSERT_EQ(found, nullptr);
      continue;
    }
    ASSERT_NE(found, nullptr);
    EXPECT_GE(found->size, size);
    EXPECT_LE(found->size, best + best / 16) << "within two bins of the best";
    index.remove(found);
    found->size = static_cast<std::int64_t>(1 + random() % (1ull << (1 + random() % 38))) * 512;
    index.insert(found);
  }
  for (auto& block : blocks) index.remove(&block);
  EXPECT_EQ(index.count(), 0);
  EXPECT_EQ(index.largest(), nullptr);
  EXPECT_EQ(index.find(512), nullptr);
}

}  // namespace
}  // namespace rensa

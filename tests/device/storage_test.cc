// Where CPU arrays get their memory, and counted handles.
#include "rensa/device/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Storage, HeapMemoryIsAlignedAndItsOwn) {
  std::mt19937 random(1);
  std::vector<StoragePtr> alive(50);
  for (int i = 0; i < 5000; ++i) {
    StoragePtr& slot = alive[random() % alive.size()];
    auto mark = static_cast<unsigned char>(i);
    std::int64_t size = static_cast<std::int64_t>(random() % (1u << (random() % 22)));
    slot = StoragePtr();
    slot = allocate(size, cpu());
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(slot->data()) % 64, 0u);
    ASSERT_EQ(slot->nbytes(), size);
    ASSERT_EQ(slot->device(), cpu());
    ASSERT_FALSE(slot->is_pinned());
    std::memset(slot->data(), mark, static_cast<std::size_t>(size));
    for (const StoragePtr& other : alive) {
      if (other && other != slot) {
        ASSERT_NE(other->data(), slot->data());
      }
    }
  }
}

TEST(Storage, HandlesCount) {
  StoragePtr a = allocate(100, cpu());
  EXPECT_EQ(a->use_count(), 1);
  {
    StoragePtr b = a, c = b;
    EXPECT_EQ(a->use_count(), 3);
    EXPECT_EQ(b, a);
    StoragePtr d = std::move(c);
    EXPECT_EQ(a->use_count(), 3);
    EXPECT_FALSE(c);  // NOLINT(bugprone-use-after-move): a move leaves null
  }
  EXPECT_EQ(a->use_count(), 1);
  StoragePtr adopted = StoragePtr::adopt(a.get());
  EXPECT_EQ(a->use_count(), 1) << "adopt takes a count over";
  a->retain();
}

TEST(Storage, WhatCannotBeHadIsAnError) {
  for (std::int64_t bytes : {std::int64_t{1} << 55, std::int64_t{1} << 62, std::int64_t{-1}}) {
    try {
      allocate(bytes, cpu());
      FAIL() << bytes;
    } catch (const OutOfMemoryError& error) {
      EXPECT_NE(std::string(error.what()).find("cpu: asked for " + std::to_string(bytes)),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(allocate(10, cpu())->nbytes(), 10);
}

TEST(Storage, ForeignMemoryGoesBackOnce) {
  int calls = 0;
  char data[8];
  auto deleter = [](void* context) { ++*static_cast<int*>(context); };
  {
    StoragePtr a = wrap_storage(data, 8, cpu(), deleter, &calls);
    StoragePtr b = a;
    EXPECT_EQ(a->data(), data);
    EXPECT_EQ(a->nbytes(), 8);
    a = StoragePtr();
    EXPECT_EQ(calls, 0);
  }
  EXPECT_EQ(calls, 1);
  wrap_storage(data, 8, cpu(), nullptr, nullptr);
}

TEST(Storage, ThreadsFreeEachOthersMemory) {
  std::vector<StoragePtr> blocks(256);
  auto fill = [&](std::size_t begin, std::size_t end) {
    for (int round = 0; round < 50; ++round) {
      for (std::size_t i = begin; i < end; ++i) {
        blocks[i] = allocate(static_cast<std::int64_t>(i * 700), cpu());
        if (i > 0) blocks[i]->data()[0] = 1;
      }
    }
  };
  for (int round = 0; round < 4; ++round) {  // each range is freed by another thread than made it
    std::size_t half = round % 2 ? 64 : 128;
    std::thread a(fill, 0, half), b(fill, half, blocks.size());
    a.join();
    b.join();
  }
}

TEST(Storage, AGpuThatIsNotThereIsNamed) {
  EXPECT_THROW(allocate(1, gpu(kMaxGpus - 1)), DeviceError);
  if (num_gpus() == 0) {
    EXPECT_THROW(allocate_pinned(1), DeviceError);
  }
}

TEST(Storage, PinnedMemory) {
  RENSA_NEEDS_GPUS(1);
  StoragePtr a = allocate_pinned(1000);
  EXPECT_TRUE(a->is_pinned());
  EXPECT_EQ(a->device(), cpu());
  std::memset(a->data(), 1, 1000);
}

}  // namespace
}  // namespace rensa

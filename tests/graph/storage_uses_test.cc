// The index of a recorded list by storage.
#include "rensa/graph/storage_uses.h"

#include <gtest/gtest.h>

#include "rensa/array/exchange.h"
#include "rensa/array/routines.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(StorageUses, FollowsTheListAsItChanges) {
  Array x = xp::ones({10}), y;
  Recording recording;
  ThreadState::current().recorder = &recording;
  y = x + 1;
  y *= 2;
  Array z = x + y;
  ThreadState::current().recorder = nullptr;
  StorageUses uses(recording);
  const Storage *of_x = x.storage().get(), *of_y = y.storage().get();
  using Places = StorageUses::Places;
  EXPECT_EQ(uses.users(of_x), (Places{0, 2}));
  EXPECT_EQ(uses.writers(of_x), Places());
  EXPECT_EQ(uses.writers(of_y), (Places{0, 1}));
  EXPECT_TRUE(uses.used_between(of_y, 0, 2));
  EXPECT_TRUE(uses.written_between(of_y, 0, 2));
  EXPECT_FALSE(uses.written_between(of_y, 1, 3));
  EXPECT_TRUE(uses.written_from(of_y, 1, 3));
  EXPECT_FALSE(uses.written_from(of_y, 2, 3));
  EXPECT_TRUE(uses.used_from(of_y, 2, 3));
  EXPECT_FALSE(uses.used_from(of_x, 1, 2));
  EXPECT_TRUE(uses.used_after(of_y, 1));
  EXPECT_FALSE(uses.used_after(of_y, 2));
  EXPECT_EQ(uses.writer_before(of_y, 2), 1u);
  EXPECT_EQ(uses.writer_before(of_y, 0), 0u);
  EXPECT_FALSE(uses.is_handed_over(of_x));  // nobody writes it
  EXPECT_FALSE(uses.is_handed_over(of_y));
  EXPECT_TRUE(uses.conflict(0, 1));
  EXPECT_TRUE(uses.conflict(1, 2));

  uses.replace(1, nullptr);
  EXPECT_EQ(uses.writers(of_y), Places{0});
  EXPECT_TRUE(uses.is_handed_over(of_y));
  EXPECT_FALSE(uses.used_between(of_y, 0, 2));
  EXPECT_TRUE(uses.used_from(of_y, 0, 2));
  EXPECT_FALSE(uses.conflict(1, 2));
  uses.replace(2, recording.operations[1].get());
  EXPECT_EQ(uses.users(of_x), Places{0});
  EXPECT_EQ(uses.writers(of_y), (Places{0, 2}));
  EXPECT_FALSE(uses.is_handed_over(of_y));
}

TEST(StorageUses, WrappersOfTheSameMemoryCountAsOne) {
  for (Device device : testing::test_devices()) {
    Array memory = xp::zeros({40}, float32, device), x = xp::ones({30}, float32, device);
    auto theirs = [&](std::int64_t begin) {
      return xp::wrap(static_cast<float*>(memory.data()) + begin, {30}, float32, device);
    };
    Array head = theirs(0), tail = theirs(10), y;
    Recording recording;
    ThreadState::current().recorder = &recording;
    head += x;
    y = tail * 2;
    ThreadState::current().recorder = nullptr;
    StorageUses uses(recording);
    EXPECT_EQ(uses.users(head.storage().get()), (StorageUses::Places{0, 1}));
    EXPECT_TRUE(uses.used_after(head.storage().get(), 0));
    EXPECT_TRUE(uses.conflict(0, 1));
  }
}

}  // namespace
}  // namespace rensa

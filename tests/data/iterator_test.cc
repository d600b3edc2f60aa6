// SerialIterator's state machine.
#include "rensa/data/iterator.h"

#include <chrono>
#include <limits>
#include <numeric>
#include <thread>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Dataset numbers(std::int64_t n) {
  return Dataset(n, [](std::int64_t i) { return Columns{xp::array(i, cpu())}; });
}

std::vector<std::int64_t> next_indices(const Iterator& iterator) {
  auto batch = iterator.next();
  return batch ? batch->indices().to_vector<std::int64_t>() : std::vector<std::int64_t>{-1};
}

using Indices = std::vector<std::int64_t>;

TEST(SerialIterator, WrapsAcrossTheEndOfAnEpoch) {
  iterators::SerialIterator it(numbers(5), 2, {.shuffle = false});
  EXPECT_FALSE(it.previous_epoch_detail());
  EXPECT_EQ(next_indices(it), (Indices{0, 1}));
  EXPECT_EQ(it.epoch(), 0);
  EXPECT_DOUBLE_EQ(it.epoch_detail(), 0.4);
  EXPECT_DOUBLE_EQ(*it.previous_epoch_detail(), 0);
  EXPECT_EQ(next_indices(it), (Indices{2, 3}));
  EXPECT_FALSE(it.is_new_epoch());
  EXPECT_EQ(next_indices(it), (Indices{4, 0}));
  EXPECT_TRUE(it.is_new_epoch());
  EXPECT_EQ(it.epoch(), 1);
  EXPECT_DOUBLE_EQ(it.epoch_detail(), 1.2);
  EXPECT_DOUBLE_EQ(*it.previous_epoch_detail(), 0.8);
  EXPECT_EQ(next_indices(it), (Indices{1, 2}));
  EXPECT_FALSE(it.is_new_epoch());
  EXPECT_EQ(next_indices(it), (Indices{3, 4}));
  EXPECT_TRUE(it.is_new_epoch());
  EXPECT_DOUBLE_EQ(it.epoch_detail(), 2.0);
}

TEST(SerialIterator, EndsWithAShortBatch) {
  iterators::SerialIterator it(numbers(5), 2, {.repeat = false, .shuffle = false});
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(next_indices(it), (Indices{0, 1}));
    EXPECT_EQ(next_indices(it), (Indices{2, 3}));
    EXPECT_FALSE(it.is_new_epoch());
    EXPECT_EQ(next_indices(it), (Indices{4}));
    EXPECT_TRUE(it.is_new_epoch());
    EXPECT_DOUBLE_EQ(it.epoch_detail(), 1.0);
    EXPECT_FALSE(it.next());
    EXPECT_FALSE(it.next());
    it.reset();
    EXPECT_EQ(it.epoch(), 0);
    EXPECT_FALSE(it.previous_epoch_detail());
  }
}

TEST(SerialIterator, ABatchMayBeLargerThanTheDataset) {
  iterators::SerialIterator it(numbers(3), 7, {.shuffle = false});
  EXPECT_EQ(next_indices(it), (Indices{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(it.epoch(), 2);
  EXPECT_TRUE(it.is_new_epoch());
  EXPECT_EQ(next_indices(it), (Indices{1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(it.epoch(), 4);
  iterators::SerialIterator once(numbers(3), 7, {.repeat = false, .shuffle = false});
  EXPECT_EQ(next_indices(once), (Indices{0, 1, 2}));
  EXPECT_FALSE(once.next());
}

TEST(SerialIterator, ABatchOfManyEpochsIsAsManyOrders) {
  // What small batches give one after the other: the orders do not depend on the batches.
  iterators::SerialIterator one(numbers(3), 1, {.seed = 5}), many(numbers(3), 3000, {.seed = 5});
  for (int batch = 0; batch < 2; ++batch) {
    Indices want;
    for (int i = 0; i < 3000; ++i) want.push_back(next_indices(one)[0]);
    EXPECT_EQ(next_indices(many), want);
    EXPECT_TRUE(many.is_new_epoch());
    EXPECT_EQ(many.epoch(), 1000 * (batch + 1));
  }
}

TEST(SerialIterator, ABatchThatNoMemoryHoldsIsRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(iterators::SerialIterator(numbers(5), kMost), ShapeError);
  EXPECT_THROW(iterators::SerialIterator(numbers(5), kMost / 2), OutOfMemoryError);
}

TEST(SerialIterator, EachEpochIsAnotherOrderOfAllExamples) {
  iterators::SerialIterator it(numbers(100), 7, {.seed = 3});
  Indices all;
  while (all.size() < 300) {
    for (std::int64_t i : next_indices(it)) all.push_back(i);
  }
  std::vector<Indices> epochs;
  for (int e = 0; e < 3; ++e) {
    epochs.emplace_back(all.begin() + 100 * e, all.begin() + 100 * (e + 1));
    Indices sorted = epochs.back(), expected(100);
    std::sort(sorted.begin(), sorted.end());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(sorted, expected) << "epoch " << e;
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(SerialIterator, OrdersDependOnTheSeedAlone) {
  auto draw = [](std::optional<std::uint64_t> seed) {
    iterators::SerialIterator it(numbers(50), 50, {.seed = seed});
    Indices first = next_indices(it), second = next_indices(it);
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  xp::random::seed(5);
  Indices a = draw({}), b = draw({});
  xp::random::seed(5);
  EXPECT_EQ(draw({}), a);
  EXPECT_NE(a, b);
}

TEST(SerialIterator, CopiesAreTheSameIterator) {
  iterators::SerialIterator it(numbers(4), 1, {.shuffle = false});
  Iterator copy = it;
  EXPECT_EQ(next_indices(copy), (Indices{0}));
  EXPECT_EQ(next_indices(it), (Indices{1}));
}

TEST(SerialIterator, BadArguments) {
  EXPECT_THROW(iterators::SerialIterator(numbers(4), 0), ValueError);
  EXPECT_THROW(iterators::SerialIterator(numbers(4), -1), ValueError);
  EXPECT_THROW(iterators::SerialIterator(numbers(0), 2), ValueError);
  iterators::SerialIterator empty(numbers(0), 2, {.repeat = false});
  EXPECT_FALSE(empty.next());
}

TEST(Batch, StridedPartsAreWhatPythonGives) {
  iterators::SerialIterator it(numbers(10), 7, {.shuffle = false});
  Batch batch = *it.next();
  EXPECT_EQ(batch.strided(0, 3).indices().to_vector<std::int64_t>(), (Indices{0, 3, 6}));
  EXPECT_EQ(batch.strided(2, 3).indices().to_vector<std::int64_t>(), (Indices{2, 5}));
  EXPECT_EQ(batch.strided(8, 9).size(), 0);
  EXPECT_EQ(batch.strided(1, 2).strided(1, 2).indices().to_vector<std::int64_t>(), (Indices{3}));
}

TEST(Batch, IndicesOnAGpuAreThoseOfTheHost) {
  RENSA_NEEDS_GPUS(1);
  iterators::SerialIterator it(numbers(11), 4);
  std::vector<Batch> held;
  for (int i = 0; i < 20; ++i) {
    Batch batch = *it.next();
    for (const Batch& b : {batch, batch.strided(1, 3)}) {
      EXPECT_EQ(b.indices_on(gpu(0)).to_vector<std::int64_t>(),
                b.indices().to_vector<std::int64_t>());
    }
    held.push_back(batch);
  }
  for (const Batch& b : held) {  // epochs later
    EXPECT_EQ(b.indices_on(gpu(0)).to_vector<std::int64_t>(),
              b.indices().to_vector<std::int64_t>());
  }
}

TEST(Batch, EveryStreamWaitsForIndices) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream busy(gpu(0), cuda::non_blocking), other(gpu(0), cuda::non_blocking);
  iterators::SerialIterator it(numbers(4096), 4096);
  for (int epoch = 0; epoch < 3; ++epoch) {
    Batch batch = *it.next();
    busy.launch_host_func([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    {
      cuda::StreamScope scope(busy);
      static_cast<void>(batch.indices_on(gpu(0)));  // it is sent behind what the stream does
    }
    cuda::StreamScope scope(other);
    EXPECT_EQ(batch.indices_on(gpu(0)).to_vector<std::int64_t>(),
              batch.indices().to_vector<std::int64_t>());
  }
}

}  // namespace
}  // namespace rensa

// MultithreadIterator: SerialIterator's batches, whatever the threads do.
#include "rensa/data/multithread_iterator.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "rensa/array/random_basics.h"
#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/data/converter.h"
#include "rensa/data/sub_dataset.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using iterators::MultithreadIterator;
using iterators::MultithreadIteratorOptions;
using iterators::SerialIterator;
using ::testing::HasSubstr;

/// Examples with something random on every level: they are augmented twice, and are parts of
/// others. Now and then one takes longer.
Dataset augmented(std::int64_t n) {
  Dataset drawn(n, [](std::int64_t i, RandomStream& random) {
    if (random.integers(50) == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    return Columns{xp::array(std::vector<double>{static_cast<double>(i), random.uniform()}, cpu())};
  });
  datasets::TransformDataset noisy(drawn, [](const Columns& in, RandomStream& random) {
    return Columns{in[0] + random.normal(), xp::array(random.integers(1000), cpu())};
  });
  datasets::SubDataset part(noisy, 0, n / 2);
  return datasets::ConcatenatedDataset({datasets::SubDataset(noisy, n / 2, n), part});
}

/// A batch and where the iterator is behind it, as one list to compare.
std::vector<double> state_of(const Iterator& it, const std::optional<Batch>& batch) {
  std::vector<double> all{static_cast<double>(it.epoch()), it.is_new_epoch() ? 1.0 : 0.0,
                          it.epoch_detail(), it.previous_epoch_detail().value_or(-1)};
  if (!batch) return all;
  for (std::int64_t i : batch->indices().to_vector<std::int64_t>()) {
    all.push_back(static_cast<double>(i));
  }
  for (const Array& column : concat_examples(*batch)) {
    for (double x : column.astype(float64).to_vector<double>()) all.push_back(x);
  }
  return all;
}

std::vector<double> next_state(const Iterator& it) {
  std::optional<Batch> batch = it.next();
  return state_of(it, batch);
}

TEST(MultithreadIterator, WhateverTheThreadsTheBatchesAreThoseOfSerialIterator) {
  Dataset dataset = augmented(30);
  for (bool repeat : {true, false}) {
    for (bool shuffle : {true, false}) {
      SerialIterator serial(dataset, 7, {.repeat = repeat, .shuffle = shuffle, .seed = 3});
      std::vector<std::vector<double>> want;
      for (int i = 0; i < 24; ++i) {
        if (i == 11) serial.reset();
        want.push_back(next_state(serial));
      }
      for (int threads = 1; threads <= 16; ++threads) {
        MultithreadIterator it(dataset, 7,
                               {.repeat = repeat,
                                .shuffle = shuffle,
                                .seed = 3,
                                .n_threads = threads,
                                .n_prefetch = threads % 4});
        for (int i = 0; i < 24; ++i) {
          if (i == 11) it.reset();
          ASSERT_EQ(next_state(it), want[static_cast<std::size_t>(i)])
              << threads << " threads, batch " << i;
        }
      }
    }
  }
}

TEST(MultithreadIterator, SeedsDifferByElementEpochAndRun) {
  Dataset dataset = Dataset(5, [](std::int64_t, RandomStream& random) {
    return Columns{xp::array(random.uniform(), cpu())};
  });
  std::vector<double> all;
  MultithreadIterator it(dataset, 4, {.shuffle = false, .seed = 8, .n_threads = 2});
  for (int i = 0; i < 20; ++i) {
    if (i == 10) it.reset();
    for (double x : concat_examples(*it.next())[0].to_vector<double>()) all.push_back(x);
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_EQ(dataset[2][0].item<double>(), dataset[2][0].item<double>());
  // An element has the same seed in whatever batch it comes, and in whichever part of a batch.
  SerialIterator one(dataset, 1, {.shuffle = false, .seed = 8});
  SerialIterator many(dataset, 12, {.shuffle = false, .seed = 8});
  Batch batch = *many.next(), part = batch.strided(1, 3);
  for (std::int64_t k = 0; k < 12; ++k) {
    EXPECT_EQ(one.next()->seed(0), batch.seed(k));
    if (k < part.size()) {
      EXPECT_EQ(part.seed(k), batch.seed(1 + 3 * k));
    }
  }
  EXPECT_THROW(batch.seed(12), IndexError);
}

TEST(MultithreadIterator, PartsOfABatchHaveItsExamples) {
  Dataset dataset = augmented(30);
  SerialIterator serial(dataset, 8, {.seed = 1});
  MultithreadIterator it(dataset, 8, {.seed = 1, .n_threads = 3});
  for (int i = 0; i < 6; ++i) {
    Batch want = *serial.next(), batch = *it.next();
    for (auto [start, step] : {std::pair(0, 2), {1, 2}, {2, 3}}) {
      Columns a = concat_examples(want.strided(start, step).strided(1, 2));
      Columns b = concat_examples(batch.strided(start, step).strided(1, 2));
      EXPECT_TRUE(xp::array_equal(a[0], b[0]) && xp::array_equal(a[1], b[1]));
    }
  }
}

TEST(MultithreadIterator, SentencesOfDifferentLengths) {
  // What docs/models.md shows.
  std::vector<std::int64_t> lengths{3, 9, 4, 8, 2, 9, 3, 1, 7};
  Dataset sentences(9, [=](std::int64_t i) {
    return Columns{xp::arange(lengths[static_cast<std::size_t>(i)], int32, cpu()),
                   xp::array(i, cpu())};
  });
  for (Device device : testing::test_devices()) {
    datasets::TransformDataset noisy(sentences, [](const Columns& in, RandomStream& random) {
      return random.uniform() < 0.5 ? in : Columns{xp::flip(in[0]), in[1]};
    });
    iterators::BucketOrderSampler similar(lengths, 4, {.drop_last = true});
    iterators::MultithreadIterator train(noisy, 4, {.order_sampler = similar, .n_threads = 8});
    Converter convert({.padding = {-1, std::nullopt}});
    Columns columns = convert(*train.next(), device);
    std::int64_t longest = 0;
    for (std::int64_t i : columns[1].to_vector<std::int64_t>()) {
      longest = std::max(longest, lengths[static_cast<std::size_t>(i)]);
    }
    EXPECT_EQ(columns[0].shape(), (Shape{4, longest}));
    EXPECT_EQ(columns[0].device(), device);
  }
}

TEST(MultithreadIterator, ADatasetOfArraysIsGatheredByTheConverter) {
  datasets::TupleDataset dataset(xp::arange(10, float32, cpu()));
  MultithreadIterator it(dataset, 3, {.seed = 1});
  SerialIterator serial(dataset, 3, {.seed = 1});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(next_state(it), next_state(serial));
}

struct Broken : std::runtime_error {
  explicit Broken(std::int64_t i) : std::runtime_error("example " + std::to_string(i)) {}
};

TEST(MultithreadIterator, AnExceptionIsThrownWhereItsBatchWouldBe) {
  Dataset dataset(20, [](std::int64_t i) {
    if (i == 5) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (i == 5 || i == 6 || i == 7) throw Broken(i);
    return Columns{xp::array(i, cpu())};
  });
  for (int threads : {1, 4, 16}) {
    MultithreadIterator it(dataset, 4, {.shuffle = false, .n_threads = threads, .n_prefetch = 4});
    for (int run = 0; run < 3; ++run, it.reset()) {
      EXPECT_EQ(concat_examples(*it.next())[0].to_vector<std::int64_t>()[3], 3);
      EXPECT_DOUBLE_EQ(it.epoch_detail(), 0.2);
      EXPECT_THAT(testing::thrown<Broken>([&] { it.next(); }), HasSubstr("example 5"));
      EXPECT_DOUBLE_EQ(it.epoch_detail(), 0.4);
      EXPECT_EQ(concat_examples(*it.next())[0].to_vector<std::int64_t>()[0], 8);
    }
    EXPECT_EQ(it.next()->indices()[0].item<std::int64_t>(), 0);
    EXPECT_THROW(it.next(), Broken);  // and the end while others are fetched
  }
}

TEST(MultithreadIterator, AnOrderThatCannotBeDrawnIsThrownInItsPlace) {
  Dataset dataset(2, [](std::int64_t i) { return Columns{xp::array(i, cpu())}; });
  MultithreadIterator it(dataset, 1,
                         {.order_sampler =
                              [](const EpochRequest& request) {
                                return request.number < 3 ? std::vector<std::int64_t>{0, 1}
                                                          : std::vector<std::int64_t>{7, 7};
                              },
                          .n_threads = 2,
                          .n_prefetch = 6});
  // The order of a generation has the first example of the next one behind it.
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(it.next());
  for (int i = 0; i < 2; ++i) EXPECT_THROW(it.next(), ValueError);
  it.reset();  // to an order that is no better
  EXPECT_THROW(it.next(), ValueError);
}

TEST(MultithreadIterator, NoMoreIsFetchedAheadThanWasAllowed) {
  std::atomic<int> fetched = 0;
  Dataset dataset(100, [&](std::int64_t i) {
    ++fetched;
    return Columns{xp::array(i, cpu())};
  });
  MultithreadIterator it(dataset, 5, {.n_threads = 4, .n_prefetch = 3});
  EXPECT_EQ(fetched, 0);
  for (int batch = 1; batch < 10; ++batch) {
    it.next();
    EXPECT_LE(fetched, 5 * (batch + 3));
  }
  // What is ahead gets there without being asked for.
  auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (fetched < 5 * (9 + 3) && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(fetched, 5 * (9 + 3));
  MultithreadIterator none_ahead(dataset, 5, {.n_threads = 4, .n_prefetch = 0});
  fetched = 0;
  for (int batch = 1; batch < 10; ++batch) {
    none_ahead.next();
    EXPECT_EQ(fetched, 5 * batch);
  }
}

TEST(MultithreadIterator, ThreadsFetchAtTheSameTime) {
  // Examples that wait for one another: a single thread would never get through.
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool met = false;
  Dataset dataset(4, [&](std::int64_t i) {
    std::unique_lock lock(mutex);
    met = met || ++inside == 3;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return met; });
    return Columns{xp::array(i, cpu())};
  });
  MultithreadIterator(dataset, 1, {.n_threads = 3}).next();
  EXPECT_TRUE(met);
}

TEST(MultithreadIterator, ResetInFlightWaitsForExamplesInWorkAlone) {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t limit = 1;  // examples from here on wait
  std::atomic<int> begun = 0, ended = 0;
  Dataset dataset(1000, [&](std::int64_t i) {
    ++begun;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return i < limit; });
    ++ended;
    return Columns{xp::array(i, cpu())};
  });
  auto set_limit = [&](std::int64_t to) {
    std::lock_guard lock(mutex);
    limit = to;
    changed.notify_all();
  };
  MultithreadIterator it(dataset, 1, {.shuffle = false, .n_threads = 4, .n_prefetch = 100});
  int least = 1000;
  for (int run = 0; run < 5; ++run) {
    begun = ended = 0;
    set_limit(1);
    EXPECT_EQ(it.next()->indices()[0].item<std::int64_t>(), 0);
    std::thread opens([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      set_limit(1000);
    });
    it.reset();
    EXPECT_EQ(begun, ended) << "nothing is in work";
    opens.join();
    EXPECT_EQ(it.epoch_detail(), 0);
    least = std::min<int>(least, begun);
  }
  // The first one and those of four threads. (A run may open too early, on a busy machine.)
  EXPECT_LE(least, 5);
}

TEST(MultithreadIterator, RandomShutdowns) {
  // RENSA_TEST_SHUTDOWNS=10000 for a long run.
  auto runs = static_cast<std::int64_t>(environment::number("RENSA_TEST_SHUTDOWNS", 1, 1000000)
                                            .value_or(testing::quick() ? 50 : 300));
  RandomStream random(11);
  for (std::int64_t run = 0; run < runs; ++run) {
    std::int64_t n = random.integers(1, 30), bad = random.integers(2 * n);
    bool slow = random.integers(3) == 0;
    Dataset dataset(n, [=](std::int64_t i) {
      if (i == bad) throw Broken(i);
      if (slow && i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      return Columns{xp::array(i, cpu())};
    });
    MultithreadIterator it(dataset, random.integers(1, 10),
                           {.repeat = random.integers(2) == 0,
                            .n_threads = static_cast<int>(random.integers(1, 9)),
                            .n_prefetch = random.integers(5)});
    for (std::int64_t steps = random.integers(12); steps > 0; --steps) {
      try {
        if (random.integers(5) == 0) it.reset();
        else it.next();
      } catch (const Broken&) {
        EXPECT_LT(bad, n);
      }
    }
  }
}

TEST(MultithreadIterator, GoesOnFromAFile) {
  testing::TemporaryFolder folder;
  std::string path = folder / "iterator.npz";
  Dataset dataset = augmented(25);
  auto make = [&](std::uint64_t seed, int threads) {
    return MultithreadIterator(dataset, 4, {.seed = seed, .n_threads = threads, .n_prefetch = 5});
  };
  MultithreadIterator first = make(1, 4);
  for (int i = 0; i < 9; ++i) first.next();
  serializers::save_npz(path, first);
  std::vector<std::vector<double>> want;
  for (int i = 0; i < 15; ++i) want.push_back(next_state(first));
  auto expect_rest = [&](const Iterator& it) {
    EXPECT_DOUBLE_EQ(it.epoch_detail(), 36.0 / 25);
    for (const auto& state : want) ASSERT_EQ(next_state(it), state);
  };
  MultithreadIterator fresh = make(2, 3), running = make(2, 2);
  serializers::load_npz(path, fresh);
  expect_rest(fresh);
  for (int i = 0; i < 3; ++i) running.next();  // others are in flight
  serializers::load_npz(path, running);
  expect_rest(running);
  SerialIterator serial(dataset, 4, {.seed = 3});  // and it reads the other's files
  serializers::load_npz(path, serial);
  expect_rest(serial);
}

TEST(MultithreadIterator, SamplersGoOnFromAFile) {
  testing::TemporaryFolder folder;
  std::string path = folder / "iterator.npz";
  Dataset dataset = augmented(25);
  std::vector<double> weights(25, 1.0);
  std::vector<std::int64_t> lengths(25);
  for (std::size_t i = 0; i < 25; ++i) lengths[i] = static_cast<std::int64_t>(i * i % 7);
  for (const OrderSampler& sampler :
       {OrderSampler(iterators::ShuffleOrderSampler()),
        OrderSampler(iterators::WeightedOrderSampler(weights, 33)),
        OrderSampler(iterators::BucketOrderSampler(lengths, 4, {.drop_last = true}))}) {
    MultithreadIterator first(dataset, 4, {.seed = 1, .order_sampler = sampler, .n_threads = 3});
    SerialIterator serial(dataset, 4, {.seed = 1, .order_sampler = sampler});
    for (int i = 0; i < 9; ++i) ASSERT_EQ(next_state(first), next_state(serial));
    serializers::save_npz(path, first);
    MultithreadIterator again(dataset, 4, {.seed = 2, .order_sampler = sampler, .n_threads = 2});
    serializers::load_npz(path, again);
    for (int i = 0; i < 15; ++i) ASSERT_EQ(next_state(again), next_state(first));
  }
}

TEST(MultithreadIterator, ThreadsHaveTheConfigurationOfTheirMaker) {
  Dataset dataset(8, [](std::int64_t) {
    return Columns{xp::array(config().dtype == float16 && !config().train, cpu())};
  });
  UsingConfig dtype(&Config::dtype, DefaultDtype(float16));
  UsingConfig train(&Config::train, false);
  MultithreadIterator it(dataset, 8, {.n_threads = 3});
  config().train = true;  // later changes are not theirs
  EXPECT_TRUE(concat_examples(*it.next())[0].all().item<bool>());
}

TEST(MultithreadIterator, AChildProcessFetchesByThreadsOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer starts no threads after a fork of many";
#endif
  Dataset dataset = augmented(20);
  MultithreadIterator it(dataset, 3, {.seed = 1, .n_threads = 2});
  SerialIterator serial(dataset, 3, {.seed = 1});
  next_state(it), next_state(serial);
  std::vector<double> want = next_state(serial);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    bool same = false;
    {
      MultithreadIterator mine = it;
      same = next_state(mine) == want;
      mine.reset();
      same = same && mine.next();
    }
    _exit(same ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(next_state(it), want);
}

TEST(MultithreadIterator, BadArguments) {
  Dataset dataset = augmented(4), empty(0, [](std::int64_t) { return Columns{}; });
  EXPECT_THROW(MultithreadIterator(dataset, 0), ValueError);
  EXPECT_THROW(MultithreadIterator(dataset, 1, {.n_threads = -1}), ValueError);
  EXPECT_THROW(MultithreadIterator(dataset, 1, {.n_threads = 5000}), ValueError);
  EXPECT_THROW(MultithreadIterator(dataset, 1, {.n_prefetch = -1}), ValueError);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(MultithreadIterator(dataset, 1, {.n_prefetch = kMost}), ValueError);
  EXPECT_THAT(testing::thrown<ValueError>([&] { MultithreadIterator(empty, 1); }),
              HasSubstr("MultithreadIterator"));
  EXPECT_FALSE(MultithreadIterator(empty, 1, {.repeat = false}).next());
}

}  // namespace
}  // namespace rensa

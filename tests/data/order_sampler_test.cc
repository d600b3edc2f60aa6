// Order samplers, and the numbers that examples draw.
#include "rensa/data/order_sampler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "rensa/core/error.h"
#include "rensa/data/iterator.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using iterators::BucketOrderSampler;
using iterators::SerialIterator;
using iterators::ShuffleOrderSampler;
using iterators::WeightedOrderSampler;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Indices = std::vector<std::int64_t>;

Dataset numbers(std::int64_t n) {
  return Dataset(n, [](std::int64_t i) { return Columns{xp::array(i, cpu())}; });
}

Indices next(const Iterator& it) { return it.next()->indices().to_vector<std::int64_t>(); }

Indices up_to(std::int64_t n) {
  Indices all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Indices sorted(Indices list) {
  std::ranges::sort(list);
  return list;
}

TEST(OrderSampler, ShuffleGivesWhatShuffledIteratorsDo) {
  SerialIterator plain(numbers(20), 7, {.seed = 4});
  SerialIterator sampled(numbers(20), 7, {.seed = 4, .order_sampler = ShuffleOrderSampler()});
  for (int i = 0; i < 20; ++i) {
    if (i == 13) plain.reset(), sampled.reset();
    EXPECT_EQ(next(plain), next(sampled));
    EXPECT_EQ(plain.epoch_detail(), sampled.epoch_detail());
  }
}

TEST(OrderSampler, AFunctionMakesEachEpoch) {
  // Of a part of the dataset, some twice: an epoch is what the order has.
  std::vector<std::int64_t> asked;
  SerialIterator it(numbers(10), 2, {.seed = 9, .order_sampler = [&](const EpochRequest& request) {
                                       EXPECT_EQ(request.size, 10);
                                       EXPECT_EQ(request.seed, 9u);
                                       return Indices{request.number, 7, 7};
                                     }});
  EXPECT_THAT(next(it), ElementsAre(0, 7));
  EXPECT_DOUBLE_EQ(it.epoch_detail(), 2.0 / 3);
  EXPECT_THAT(next(it), ElementsAre(7, 1));
  EXPECT_TRUE(it.is_new_epoch());
  EXPECT_THAT(next(it), ElementsAre(7, 7));
  EXPECT_EQ(it.epoch(), 2);
  EXPECT_THAT(next(it), ElementsAre(2, 7));
  SerialIterator once(numbers(10), 2, {.repeat = false, .order_sampler = [](const EpochRequest&) {
                                         return Indices{3, 1, 4};
                                       }});
  EXPECT_THAT(next(once), ElementsAre(3, 1));
  EXPECT_THAT(next(once), ElementsAre(4));
  EXPECT_FALSE(once.next());
}

TEST(OrderSampler, OrdersThatDoNotFitAreRefused) {
  auto make = [](OrderSampler sampler, bool shuffle = true) {
    SerialIterator it(numbers(4), 1, {.shuffle = shuffle, .order_sampler = std::move(sampler)});
    for (int i = 0; i < 4; ++i) it.next();
  };
  EXPECT_THROW(make(ShuffleOrderSampler(), false), ValueError);
  EXPECT_THROW(make([](const EpochRequest&) { return Indices{}; }), ValueError);
  EXPECT_THAT(
      testing::thrown<ValueError>([&] { make([](const EpochRequest&) { return Indices{4}; }); }),
      HasSubstr("example 4 of a dataset of 4"));
  EXPECT_THROW(make([](const EpochRequest&) { return Indices{-1}; }), ValueError);
  EXPECT_THAT(
      testing::thrown<ValueError>([&] {
        make([](const EpochRequest& r) { return r.number < 2 ? Indices{0} : Indices{0, 1}; });
      }),
      HasSubstr("an order of 2 examples after one of 1"));
}

TEST(WeightedOrderSampler, DrawsByWeight) {
  SerialIterator it(numbers(4), 3000,
                    {.seed = 1, .order_sampler = WeightedOrderSampler({1, 0, 3, 0}, 30000)});
  std::vector<double> counts(4);
  Indices first = next(it), drawn = first;
  for (int i = 1; i < 10; ++i) {
    Indices more = next(it);
    EXPECT_NE(more, first);
    drawn.insert(drawn.end(), more.begin(), more.end());
  }
  EXPECT_EQ(it.epoch(), 1);
  for (std::int64_t i : drawn) ++counts[static_cast<std::size_t>(i)];
  EXPECT_EQ(counts[1] + counts[3], 0);
  // 7500 expected; six standard deviations of 75.
  EXPECT_NEAR(counts[0], 7500, 450);
  EXPECT_EQ(WeightedOrderSampler({1, 2})({2, 0, 0}).size(), 2u);
}

TEST(WeightedOrderSampler, BadWeights) {
  EXPECT_THROW(WeightedOrderSampler({}), ValueError);
  EXPECT_THROW(WeightedOrderSampler({0, 0}), ValueError);
  EXPECT_THROW(WeightedOrderSampler({1, -1}), ValueError);
  EXPECT_THROW(WeightedOrderSampler({1, std::nan("")}), ValueError);
  EXPECT_THROW(WeightedOrderSampler({std::numeric_limits<double>::infinity()}), ValueError);
  EXPECT_THROW(WeightedOrderSampler({1}, -1), ValueError);
  EXPECT_THROW(SerialIterator(numbers(4), 1, {.order_sampler = WeightedOrderSampler({1, 2, 3})}),
               ValueError);
}

TEST(BucketOrderSampler, BatchesAreOfSimilarLengths) {
  constexpr std::int64_t kN = 1000, kBatch = 16;
  Indices lengths;
  RandomStream random(3);
  for (std::int64_t i = 0; i < kN; ++i) lengths.push_back(random.integers(500));
  for (bool drop : {false, true}) {
    SerialIterator it(numbers(kN), kBatch,
                      {.repeat = drop,
                       .seed = 2,
                       .order_sampler = BucketOrderSampler(
                           lengths, kBatch, {.batches_per_bucket = 31, .drop_last = drop})});
    std::vector<Indices> epochs;
    for (int epoch = 0; epoch < 2; ++epoch) {
      Indices all, shortest;
      while (it.epoch() == (drop ? epoch : 0)) {
        Indices batch = next(it), of;
        for (std::int64_t i : batch) of.push_back(lengths[static_cast<std::size_t>(i)]);
        all.insert(all.end(), batch.begin(), batch.end());
        if (batch.size() < kBatch) continue;
        auto [least, most] = std::ranges::minmax(of);
        EXPECT_LT(most - least, 60);  // of 500: sorted in buckets of 496, 16 are 1/31 of them
        shortest.push_back(least);
      }
      EXPECT_EQ(all.size(), drop ? 992u : 1000u);
      EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size());
      EXPECT_FALSE(std::ranges::is_sorted(shortest)) << "the batches are in no order of lengths";
      epochs.push_back(all);
      if (!drop) it.reset();
    }
    EXPECT_NE(epochs[0], epochs[1]);
    EXPECT_EQ(sorted(epochs[0]) == sorted(epochs[1]), !drop) << "others are left out";
  }
}

TEST(BucketOrderSampler, ExamplesOfOneLengthAreShuffled) {
  BucketOrderSampler sampler(Indices(64, 5), 4);
  Indices one = sampler({64, 0, 1});
  EXPECT_EQ(sorted(one), up_to(64));
  int neighbours = 0;
  for (std::size_t i = 0; i + 1 < one.size(); ++i) neighbours += one[i + 1] == one[i] + 1;
  EXPECT_LT(neighbours, 10);
  EXPECT_THROW(BucketOrderSampler({1, 2}, 0), ValueError);
  EXPECT_THROW(BucketOrderSampler({1, 2}, 1, {.batches_per_bucket = 0}), ValueError);
  EXPECT_THROW(sampler({63, 0, 1}), ValueError);
}

TEST(RandomStream, FollowsFromItsSeed) {
  RandomStream a(5), b(5), c(6);
  std::uint64_t first = a.bits();
  EXPECT_EQ(first, b.bits());
  EXPECT_NE(first, c.bits());
  EXPECT_NE(first, a.bits());
  double sum = 0, squares = 0, normals = 0, normal_squares = 0;
  constexpr int kN = 20000;
  Indices counts(6);
  for (int i = 0; i < kN; ++i) {
    double u = a.uniform(2, 4), z = a.normal(1, 3);
    ASSERT_TRUE(u >= 2 && u < 4);
    sum += u, squares += u * u;
    normals += z, normal_squares += z * z;
    ++counts.at(static_cast<std::size_t>(a.integers(-2, 4) + 2));
  }
  EXPECT_NEAR(sum / kN, 3, 0.03);
  EXPECT_NEAR(squares / kN - 9, 1.0 / 3, 0.1);
  EXPECT_NEAR(normals / kN, 1, 0.13);
  EXPECT_NEAR(normal_squares / kN - 1, 9, 0.6);
  for (std::int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), kN / 6.0, 320);
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_LT(a.integers(kLeast, kLeast + 1), kLeast + 1);
  double next = std::nextafter(1, 2);  // half of the sums round to it
  for (int i = 0; i < 20; ++i) EXPECT_EQ(a.uniform(1, next), 1);
  EXPECT_THROW(a.integers(0), ValueError);
  EXPECT_THROW(a.integers(3, 2), ValueError);
}

}  // namespace
}  // namespace rensa

// Datasets made of others: parts, splits, folds, transforms, several in a row.
#include "rensa/data/dataset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/data/data.h"
#include "tests/testing.h"

namespace rensa::datasets {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Examples {i, 10 * i}: rows of arrays, or made one by one.
std::vector<Dataset> datasets_of(std::int64_t n) {
  Array x = xp::arange(n, float32);
  return {TupleDataset(x, x * 10.f), Dataset(n, [](std::int64_t i) {
            return Columns{xp::array(static_cast<float>(i), cpu()),
                           xp::array(static_cast<float>(10 * i), cpu())};
          })};
}

std::vector<std::int64_t> numbers(const Dataset& dataset) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    Columns example = dataset[i];
    all.push_back(static_cast<std::int64_t>(example[0].item<float>()));
    EXPECT_EQ(example[1].item<float>(), 10 * example[0].item<float>());
  }
  return all;
}

TEST(SubDatasetTest, PartsAndOrders) {
  for (const Dataset& dataset : datasets_of(5)) {
    EXPECT_THAT(numbers(SubDataset(dataset, 1, 4)), ElementsAre(1, 2, 3));
    EXPECT_THAT(numbers(SubDataset(dataset, 1, 4, {4, 2, 0, 3, 1})), ElementsAre(2, 0, 3));
    EXPECT_EQ(SubDataset(dataset, 2, 2).size(), 0);
    SubDataset part(dataset, 1, 4);
    EXPECT_THAT(numbers(SubDataset(part, 0, 3, {2, 1, 0})), ElementsAre(3, 2, 1));
    EXPECT_THROW(part[3], IndexError);
    EXPECT_EQ(part.columns() != nullptr, dataset.columns() != nullptr);
    EXPECT_THROW(SubDataset(dataset, -1, 2), ValueError);
    EXPECT_THROW(SubDataset(dataset, 3, 2), ValueError);
    EXPECT_THAT(testing::thrown<ValueError>([&] { SubDataset(dataset, 0, 6); }),
                HasSubstr("examples 0 to 6 of a dataset of 5"));
    EXPECT_THROW(SubDataset(dataset, 0, 2, {0, 1}), ValueError);
    EXPECT_THROW(SubDataset(dataset, 0, 2, {0, 1, 2, 3, 5}), ValueError);
  }
}

TEST(SubDatasetTest, ARangeOfArraysIsAView) {
  Array x = xp::arange(4, float32);
  SubDataset part(TupleDataset(x), 1, 3);
  x[{Slice(1, 2)}].fill(9);
  EXPECT_EQ(part[0][0].item<float>(), 9);
}

TEST(SubDatasetTest, Splits) {
  for (const Dataset& dataset : datasets_of(7)) {
    auto [first, second] = split_dataset(dataset, 3);
    EXPECT_THAT(numbers(first), ElementsAre(0, 1, 2));
    EXPECT_THAT(numbers(second), ElementsAre(3, 4, 5, 6));
    auto parts = split_dataset_n(dataset, 3);
    ASSERT_EQ(parts.size(), 3U);
    EXPECT_THAT(numbers(parts[2]), ElementsAre(4, 5));
    EXPECT_THROW(split_dataset(dataset, 8), ValueError);
    EXPECT_THROW(split_dataset_n(dataset, 0), ValueError);
  }
}

TEST(SubDatasetTest, RandomSplits) {
  Dataset dataset = datasets_of(100)[0];
  auto [first, second] = split_dataset_random(dataset, 30, 7);
  std::vector<std::int64_t> all = numbers(first), rest = numbers(second), again;
  EXPECT_EQ(numbers(split_dataset_random(dataset, 30, 7).first), all);
  EXPECT_NE(numbers(split_dataset_random(dataset, 30, 8).first), all);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_FALSE(std::ranges::is_sorted(all));
  std::ranges::sort(all);
  std::vector<std::int64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  xp::random::seed(3);
  auto drawn = numbers(split_dataset_n_random(dataset, 4)[1]);
  EXPECT_NE(numbers(split_dataset_n_random(dataset, 4)[1]), drawn);
  xp::random::seed(3);
  EXPECT_EQ(numbers(split_dataset_n_random(dataset, 4)[1]), drawn);
}

TEST(SubDatasetTest, FoldsTestEachExampleOnce) {
  for (const Dataset& dataset : datasets_of(7)) {
    auto folds = get_cross_validation_datasets(dataset, 3);
    ASSERT_EQ(folds.size(), 3U);
    // As Chainer's: the last third first.
    EXPECT_THAT(numbers(folds[0].second), ElementsAre(4, 5, 6));
    EXPECT_THAT(numbers(folds[0].first), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(numbers(folds[1].second), ElementsAre(2, 3));
    EXPECT_THAT(numbers(folds[1].first), ElementsAre(4, 5, 6, 0, 1));
    EXPECT_THAT(numbers(folds[2].second), ElementsAre(0, 1));
    std::vector<std::int64_t> tested;
    for (const auto& [train, test] : get_cross_validation_datasets_random(dataset, 4, 1)) {
      EXPECT_EQ(train.size() + test.size(), 7);
      for (std::int64_t i : numbers(test)) tested.push_back(i);
    }
    std::ranges::sort(tested);
    EXPECT_THAT(tested, ElementsAre(0, 1, 2, 3, 4, 5, 6));
    EXPECT_THROW(get_cross_validation_datasets(dataset, 0), ValueError);
    EXPECT_THROW(get_cross_validation_datasets(dataset, 8), ValueError);
  }
}

TEST(DatasetTest, Transformed) {
  for (const Dataset& dataset : datasets_of(3)) {
    TransformDataset negated(dataset, [](const Columns& example) {
      return Columns{-example[0], -example[1]};
    });
    EXPECT_THAT(numbers(negated), ElementsAre(0, -1, -2));
    iterators::SerialIterator iterator(negated, 2, {.shuffle = false});
    Columns batch = concat_examples(*iterator.next());
    EXPECT_THAT(batch[1].to_vector<float>(), ElementsAre(0, -10));
  }
}

TEST(DatasetTest, Concatenated) {
  auto parts = datasets_of(2);
  ConcatenatedDataset all({parts[0], SubDataset(parts[1], 0, 0), parts[1], parts[0]});
  EXPECT_EQ(all.size(), 6);
  EXPECT_THAT(numbers(all), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THROW(all[6], IndexError);
  EXPECT_EQ(ConcatenatedDataset({}).size(), 0);
}

TEST(DatasetTest, NamedColumns) {
  Array x = xp::arange(3, float32), t = xp::arange(3, int32);
  DictDataset dataset({{"x", x}, {"t", t}});
  EXPECT_THAT(dataset.names(), ElementsAre("x", "t"));
  EXPECT_EQ(dataset.column("t").dtype(), int32);
  EXPECT_EQ(dataset[2][0].item<float>(), 2);
  EXPECT_THAT(testing::thrown<ValueError>([&] { (void)dataset.column("y"); }),
              HasSubstr("no column \"y\"; there are: x, t"));
  EXPECT_THROW(DictDataset({{"x", x}, {"x", t}}), ValueError);
  EXPECT_THROW(DictDataset({{"x", x}, {"t", xp::arange(2, int32)}}), ShapeError);
}

}  // namespace
}  // namespace rensa::datasets

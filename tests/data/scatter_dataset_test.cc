// scatter_dataset: each rank's part of what all have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "rensa/array/communicator.h"
#include "rensa/core/error.h"
#include "rensa/data/data.h"
#include "tests/ranks.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

TEST(ScatterDataset, GivesEachRankItsPart) {
  datasets::TupleDataset data = testing::line_data(11);
  for (bool shuffle : {false, true}) {
    for (bool equal : {false, true}) {
      std::vector<std::vector<double>> parts(4);
      testing::run_ranks(4, [&](const Communicator& c) {
        auto part =
            datasets::scatter_dataset(data, c, {.shuffle = shuffle, .force_equal_length = equal});
        auto& own = parts[static_cast<std::size_t>(c.rank())];
        for (std::int64_t i = 0; i < part.size(); ++i) own.push_back(part[i][0].item<double>());
      });
      std::multiset<double> all;
      for (const auto& part : parts) {
        all.insert(part.begin(), part.end());
        if (equal) {
          EXPECT_EQ(part.size(), 3u);
        }
      }
      EXPECT_EQ(all.size(), equal ? 12u : 11u);
      for (int i = 1; i <= 11; ++i) EXPECT_GE(all.count(i), 1u);
      EXPECT_EQ(parts[0] == (std::vector<double>{1, 2, 3}), !shuffle && equal);
    }
  }
  testing::run_ranks(2, [&](const Communicator& c) {
    auto other = testing::line_data(10 + c.rank());
    EXPECT_THAT(testing::thrown<ValueError>([&] { datasets::scatter_dataset(other, c); }),
                HasSubstr("11"));
    EXPECT_THROW(datasets::scatter_dataset(testing::line_data(1), c), ValueError);
  });
}

}  // namespace
}  // namespace rensa

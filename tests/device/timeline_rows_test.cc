// Records that overlap, one above the other.
#include "rensa/device/timeline_rows.h"

#include <gtest/gtest.h>

#include <random>

namespace rensa::timeline {
namespace {

std::vector<std::size_t> lanes_of(const std::vector<Record>& records) {
  std::vector<const Record*> row;
  for (const Record& record : records) row.push_back(&record);
  return arrange_lanes(row);
}

Record record(std::int64_t begin_ns, std::int64_t end_ns) {
  Record result;
  result.begin_ns = begin_ns;
  result.end_ns = end_ns;
  return result;
}

TEST(ArrangeLanes, TheFirstThatIsFree) {
  EXPECT_EQ(lanes_of({}), std::vector<std::size_t>());
  EXPECT_EQ(lanes_of({record(0, 10), record(10, 20), record(15, 17), record(16, 30)}),
            (std::vector<std::size_t>{0, 0, 1, 2}));
  EXPECT_EQ(lanes_of({record(3, 4), record(0, 9), record(4, 4), record(4, 8), record(1, 9)}),
            (std::vector<std::size_t>{0, 1, 2, 2, 3}))
      << "sorted by beginning, the longest first";
}

TEST(ArrangeLanes, EqualsALookAtEachLane) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<Record> records;
    for (int k = 0; k < 200; ++k) {
      auto begin = static_cast<std::int64_t>(random() % 300);
      records.push_back(record(begin, begin + static_cast<std::int64_t>(random() % 80)));
    }
    std::vector<const Record*> row;
    for (const Record& one : records) row.push_back(&one);
    std::vector<std::size_t> lanes = arrange_lanes(row), want;
    std::vector<std::int64_t> ends;
    for (const Record* one : row) {
      std::size_t lane = 0;
      while (lane < ends.size() && ends[lane] > one->begin_ns) ++lane;
      if (lane == ends.size()) ends.push_back(0);
      ends[lane] = one->end_ns;
      want.push_back(lane);
    }
    EXPECT_EQ(lanes, want) << turn;
  }
}

}  // namespace
}  // namespace rensa::timeline

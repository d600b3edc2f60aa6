// Sums over the ranks of a process.
#include "rensa/operations/rank_sum/rank_sum.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/peers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Ranks = std::vector<std::vector<Array>>;  // arrays by rank

std::vector<operations::RankSum> sums_of(const Ranks& ranks) {
  std::vector<std::vector<Operand>> operands(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const Array& a : ranks[r]) operands[r].push_back(a.operand());
  }
  return operations::rank_sums(operands);
}

/// Arrays of these sizes, dtypes in turn, with integers that all dtypes add up without rounding,
/// beginning `skip` elements behind what memory is aligned to.
Ranks ranks_on(const std::vector<Device>& devices, const std::vector<std::int64_t>& sizes,
               std::int64_t skip) {
  const Dtype dtypes[] = {float32, float16, bfloat16, float64};
  std::mt19937 numbers(3);
  Ranks ranks(devices.size());
  for (std::size_t r = 0; r < devices.size(); ++r) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Array whole = (xp::arange(sizes[i] + skip, int32) * static_cast<int>(numbers() % 1000) % 8)
                        .astype(dtypes[i / 2 % 4])
                        .to(devices[r]);
      ranks[r].push_back(whole[Slice(skip, sizes[i] + skip)]);
    }
  }
  return ranks;
}

void expect_sums(const std::vector<Device>& devices) {
  if (!cuda::share_memory(devices)) GTEST_SKIP() << "the GPUs do not reach each other's memory";
  const std::vector<std::int64_t> sizes{1000, 1, 4099, 0, 3, 8, 70001, 33, 16, 5, 1 << 18};
  for (std::int64_t skip : {0, 1, 8}) {
    Ranks ranks = ranks_on(devices, sizes, skip);
    std::vector<std::vector<double>> wanted;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Array sum = xp::zeros({sizes[i]}, float64, cpu());
      for (const auto& own : ranks) sum += own[i].to(cpu()).astype(float64);
      wanted.push_back(sum.to_vector<double>());
    }
    for (operations::RankSum& sum : sums_of(ranks)) launch(sum);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(ranks[r][i].to_vector<double>(), wanted[i])
            << "rank " << r << ", array " << i << ", " << skip;
      }
    }
  }
}

TEST(RankSum, OnOneDevice) {
  for (Device device : testing::test_devices()) {
    for (std::size_t ranks : {1u, 2u, 3u, 5u, 9u, 16u}) {
      expect_sums(std::vector<Device>(ranks, device));
    }
  }
}

TEST(RankSum, OnSeveralGpus) {
  RENSA_NEEDS_GPUS(2);
  std::vector<Device> devices;
  for (int i = 0; i < num_gpus(); ++i) {
    devices.push_back(gpu(i));
    if (i > 0) expect_sums(devices);
  }
  expect_sums({gpu(1), gpu(0)});
}

// What is queued before on either GPU is in the sum, and what is queued behind it finds the sum.
TEST(RankSum, ComesBetweenWhatIsQueuedOnItsGpus) {
  RENSA_NEEDS_GPUS(2);
  if (!cuda::share_memory(std::vector<Device>{gpu(0), gpu(1)})) GTEST_SKIP();
  Ranks ranks;
  for (int r = 0; r < 2; ++r) ranks.push_back({xp::zeros({1 << 22}, float32, gpu(r))});
  float wanted = 0;
  for (int round = 0; round < 20; ++round) {
    for (auto& own : ranks) {
      for (int i = 0; i < 3; ++i) own[0] += 1;
    }
    for (operations::RankSum& sum : sums_of(ranks)) launch(sum);
    for (auto& own : ranks) own[0] *= 0.5f;
    wanted = wanted + 3;
  }
  for (const auto& own : ranks) {
    EXPECT_EQ(own[0].min().item<float>(), wanted);
    EXPECT_EQ(own[0].max().item<float>(), wanted);
  }
}

// Gradients come one after the other: an operation stands where its last one is there.
TEST(RankSum, StandInTheOrderOfTheirLastArrays) {
  Ranks ranks;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<Array>& own = ranks.emplace_back();
    for (int i = 0; i < 3; ++i) {  // large ones of float32, and a small one beside each
      own.push_back(xp::zeros({3}, float64, cpu()));
      own.push_back(xp::zeros({1 << 20}, float32, cpu()));
    }
  }
  std::vector<Dtype> dtypes;
  for (const operations::RankSum& sum : sums_of(ranks)) {
    if (sum.rank == 0) dtypes.push_back(sum.pieces[0].view.dtype);
  }
  EXPECT_EQ(dtypes, (std::vector<Dtype>{float32, float32, float64, float32}));
}

TEST(RankSum, AddsInTheOrderOfTheRanks) {
  for (Device device : testing::test_devices()) {
    Ranks ranks;
    for (float value : {1e8f, -1e8f, 1.0f})
      ranks.push_back({xp::full({100}, value, float32, device)});
    for (operations::RankSum& sum : sums_of(ranks)) launch(sum);
    for (const auto& own : ranks) EXPECT_EQ(own[0].min().item<float>(), 1);
  }
}

// Each rank has its part of every array, as much as the others; larger arrays have operations of
// their own.
TEST(RankSum, EachRankSumsItsPart) {
  std::vector<Array> arrays{xp::zeros({1000}), xp::zeros({3, 7}), xp::zeros({1 << 21}),
                            xp::zeros({5}), xp::zeros({1 << 20})};
  std::vector<operations::RankSum> sums = sums_of({arrays, arrays, arrays});
  EXPECT_EQ(sums.size(), 6u);
  std::int64_t elements[3] = {0, 0, 0};
  for (const operations::RankSum& sum : sums) {
    for (std::size_t i = 0; i < sum.pieces.size(); i += 3) {
      elements[sum.rank] += sum.pieces[i].view.size();
    }
  }
  std::int64_t all = 1000 + 21 + (1 << 21) + 5 + (1 << 20);
  EXPECT_EQ(elements[0] + elements[1] + elements[2], all);
  for (std::int64_t own : elements)
    EXPECT_NEAR(static_cast<double>(own), static_cast<double>(all) / 3, 32);
}

TEST(RankSum, Refuses) {
  Array a = xp::ones({4}), longer = xp::ones({5}), integers = xp::ones({4}, int32);
  Array rows = xp::ones({4, 4}).T();
  EXPECT_THROW(sums_of({{a}, {longer}}), ShapeError);
  EXPECT_THROW(sums_of({{a}, {}}), ShapeError);
  EXPECT_THROW(sums_of({{integers}, {integers}}), DtypeError);
  EXPECT_THROW(sums_of({{rows}, {rows}}), ShapeError);
  EXPECT_TRUE(sums_of({{}, {}}).empty());
  EXPECT_TRUE(sums_of({}).empty());
}

}  // namespace
}  // namespace rensa

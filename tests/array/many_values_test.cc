// Searches, memberships, sets and orders of so many values that they go by tables: a tree of keys
// in shared memory, marks over a range, a keyed map. Each against a simple computation on the host.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "rensa/array/random.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

constexpr std::int64_t kMany = 70001;  // what a tree is built for, and no multiple of a vector

// Numbers in [-span / 2, span / 2), or from 0 on where the dtype has no sign; among floats some
// NaN of either sign, zeros of either, and infinities.
Array numbers(std::int64_t n, std::int64_t span, Dtype dtype, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  bool floats = dtype_kind(dtype) == 'f';
  std::vector<double> values(static_cast<std::size_t>(n));
  for (double& v : values) {
    v = static_cast<double>(random() % static_cast<unsigned>(span));
    if (dtype_kind(dtype) != 'u') v -= static_cast<double>(span / 2);
    if (!floats) continue;
    constexpr double kSpecial[] = {NAN, -NAN, 0.0, -0.0, INFINITY, -INFINITY};
    if (random() % 8 == 0) v = kSpecial[random() % 6];
  }
  return xp::array(values, cpu()).astype(dtype);
}

bool before(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

std::vector<std::int64_t> places(const std::vector<double>& sorted, const std::vector<double>& v,
                                 bool right) {
  std::vector<std::int64_t> result;
  for (double x : v) {
    auto at = right ? std::upper_bound(sorted.begin(), sorted.end(), x, before)
                    : std::lower_bound(sorted.begin(), sorted.end(), x, before);
    result.push_back(at - sorted.begin());
  }
  return result;
}

constexpr Dtype kDtypes[] = {int8,   int16,  int32,   int64,    uint8,   uint16,
                             uint32, uint64, float16, bfloat16, float32, float64};

TEST(ManyValues, AreSearchedByTrees) {
  std::vector<std::int64_t> sizes = {1,    2,    3,    100,  4095,  4096,
                                     4097, 8191, 8192, 8193, 16385, 50000};
  if (testing::quick()) sizes = {1, 3, 4096, 8192, 20000};
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : kDtypes) {
      std::int64_t span = itemsize(dtype) == 1 ? 100 : itemsize(dtype) == 2 ? 250 : 30000;
      Array v = numbers(kMany, span, dtype, 9), on = v.to(device);
      auto values = v.to_vector<double>();
      for (std::int64_t n : sizes) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(n));
        Array sorted = xp::sort(numbers(n, span, dtype, static_cast<int>(n)));
        auto s = sorted.to_vector<double>();
        sorted = sorted.to(device);
        ASSERT_EQ(xp::searchsorted(sorted, on).to_vector<std::int64_t>(), places(s, values, false));
        ASSERT_EQ(xp::searchsorted(sorted, on, "right").to_vector<std::int64_t>(),
                  places(s, values, true));
      }
    }
  }
}

TEST(ManyValues, OfTheLastKeysOfTheirDtype) {
  for (Device device : testing::test_devices()) {
    Array low = xp::zeros({kMany}, uint32, device), high = low - 1;  // 0 and 2^32 - 1
    Array sorted = xp::array({0u, 0u, 7u, 4294967295u, 4294967295u}, device);
    auto place = [&](const Array& v, const char* side) {
      Array at = xp::searchsorted(sorted, v, side);
      EXPECT_TRUE(xp::all(at == at[0]).item<bool>());
      return at[-1].item<int>();
    };
    EXPECT_EQ(place(low, "left"), 0);
    EXPECT_EQ(place(low, "right"), 2);
    EXPECT_EQ(place(high, "left"), 3);
    EXPECT_EQ(place(high, "right"), 5);
  }
}

TEST(ManyValues, AreSortedIntoFallingBins) {
  for (Device device : testing::test_devices()) {
    Array x = numbers(kMany, 30000, int32, 5).to(device);
    Array rising = xp::arange(-9000, 9000, 2, int32, device);
    Array bins = xp::digitize(x, rising[Slice(none, none, -1)].copy());
    EXPECT_TRUE(xp::array_equal(bins, 9000 - xp::searchsorted(rising, x, "right")));
  }
}

TEST(ManyValues, AreLookedUp) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {int8, uint16, int32, int64, bfloat16, float32, float64, complex64}) {
      for (std::int64_t n : {1, 100, 9000}) {
        Array v = numbers(kMany, 200, dtype == complex64 ? float32 : dtype, 1).astype(dtype);
        Array test = numbers(n, 120, dtype == complex64 ? float32 : dtype, 2).astype(dtype);
        std::set<double> set;
        for (auto x : test.to_vector<std::complex<double>>()) {
          if (x.real() == x.real()) set.insert(x.real());
        }
        std::vector<bool> want;
        for (auto x : v.to_vector<std::complex<double>>()) {
          want.push_back(x.real() == x.real() && set.count(x.real()) > 0);
        }
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(n));
        Array found = xp::isin(v.to(device), test.to(device));
        ASSERT_EQ(found.dtype(), bool_);
        ASSERT_EQ(found.to_vector<bool>(), want);
        want.flip();
        ASSERT_EQ(xp::isin(v.to(device), test.to(device), false, true).to_vector<bool>(), want);
      }
    }
  }
}

TEST(ManyValues, OfASmallRangeAreUnique) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {int8, int16, int32, int64, uint8, uint16, uint32, uint64}) {
      for (std::int64_t span : {1, 30, 120}) {
        Array a = numbers(50000, span, dtype, 3);
        auto values = a.to_vector<std::int64_t>();
        std::set<std::int64_t> set(values.begin(), values.end());
        Array got = xp::unique(a.to(device));
        EXPECT_EQ(got.dtype(), dtype);
        EXPECT_EQ(got.to_vector<std::int64_t>(), std::vector<std::int64_t>(set.begin(), set.end()));
      }
    }
    // More than fits a block's shared memory; and the ends of the dtypes.
    Array wide = xp::remainder(xp::arange(4000003, int64, device) * 7919, 400009) * 1 - 200000;
    EXPECT_TRUE(xp::array_equal(xp::unique(wide), xp::arange(-200000, 200009, 1, int64, device)));
    Array least = xp::remainder(xp::arange(9000, int64, device), 5) +
                  std::numeric_limits<std::int64_t>::min();
    EXPECT_TRUE(xp::array_equal(xp::unique(least), least[Slice(5)]));
    Array most = xp::full({9000}, 0, uint64, device) - 1;
    most[Slice(none, 5)] -= xp::arange(5, uint64, device);
    EXPECT_TRUE(xp::array_equal(xp::unique(most), most[Slice(4, none, -1)]));
    Array far = xp::arange(9000, int64, device);
    far[0] = std::numeric_limits<std::int64_t>::min();
    far[1] = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(xp::unique(far).size(), 9000);
  }
}

TEST(ManyValues, AreTakenByMasks) {
  for (Device device : testing::test_devices()) {
    for (std::int64_t n : {4096, 4097, 100003}) {
      Array mask = xp::arange(n, int64, device) * 7919 % 13 < 4, at = xp::flatnonzero(mask);
      for (Dtype dtype : {bool_, int16, float32, float64, complex128}) {
        Array a = (xp::arange(n, int64, device) % 97).astype(dtype);
        EXPECT_TRUE(xp::array_equal(a[mask], xp::take(a, at))) << dtype_name(dtype);
        EXPECT_EQ(Array(a[mask]).dtype(), dtype);
        Array turned = a[Slice(none, none, -1)];
        EXPECT_TRUE(xp::array_equal(turned[mask], xp::take(turned, at)));
        EXPECT_TRUE(xp::array_equal(xp::flatnonzero(mask.astype(dtype)), at));
      }
    }
    Array grid = xp::arange(300 * 70, int32, device).reshape({300, 70});
    EXPECT_TRUE(
        xp::array_equal(grid.T()[grid.T() % 3 == 1], grid.T().ravel()[grid.T().ravel() % 3 == 1]));
  }
}

TEST(ManyValues, AreShuffled) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(7);
    for (std::int64_t n : {65536, 65537, 131072, 200001}) {
      Array order = xp::random::permutation(n, device);
      ASSERT_EQ(order.dtype(), int64);
      ASSERT_TRUE(xp::array_equal(xp::sort(order), xp::arange(n, int64, device))) << n;
      ASSERT_FALSE(xp::array_equal(order, xp::random::permutation(n, device)));
      // Places are as far from where they were as chance has it: n / 3 on average.
      Array moved = xp::absolute(order - xp::arange(n, int64, device)).astype(float64);
      EXPECT_NEAR(moved.mean().item<double>() / static_cast<double>(n), 1.0 / 3, 0.005);
      xp::random::seed(8);
      Array again = xp::random::permutation(n, device).to(cpu());
      xp::random::seed(8);
      ASSERT_TRUE(xp::array_equal(again, xp::random::permutation(n, cpu())));
    }
    Array a = xp::arange(100000, float32, device);
    xp::random::shuffle(a);
    EXPECT_TRUE(xp::array_equal(xp::sort(a), xp::arange(100000, float32, device)));
  }
}

TEST(ManyValues, AreExponential) {
  for (Device device : testing::test_devices()) {
    auto draw = [](Device on) { return xp::random::default_rng(4, on).exponential(2, {1000003}); };
    Array a = draw(device).to(cpu()), want = draw(cpu());
    EXPECT_TRUE(xp::allclose(a, want, 3e-6, 1e-12));
    EXPECT_NEAR(a.mean().item<double>(), 2, 0.01);
    EXPECT_GT(a.min().item<double>(), 0);
  }
}

TEST(ManyValues, AreBinomial) {
  for (Device device : testing::test_devices()) {
    for (auto [n, p] : {std::pair(1.0, 0.5), {10.0, 0.3}, {10.0, 0.9}, {1e9, 9e-9}, {30.0, 0.33}}) {
      auto draw = [&, n = n, p = p](Device on) {
        return xp::random::default_rng(4, on).binomial(n, p, {100003});
      };
      Array a = draw(device);
      EXPECT_EQ(a.dtype(), int64);
      EXPECT_TRUE(xp::array_equal(a.to(cpu()), draw(cpu()))) << n << " " << p;
      double deviation = std::sqrt(n * p * (1 - p));
      EXPECT_NEAR(a.astype(float64).mean().item<double>(), n * p, deviation * 0.02);
      EXPECT_NEAR(a.astype(float64).std().item<double>(), deviation, deviation * 0.02);
    }
  }
}

}  // namespace
}  // namespace rensa

// What the CPU does for large arrays alone: rows that threads share, copies by shuffled vectors,
// one table of counts per part. Each against a simple computation on the host.
#include <algorithm>
#include <numeric>
#include <random>

#include "rensa/array/random_basics.h"
#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/error.h"
#include "rensa/operations/indexing/cpu_kernels.h"
#include "rensa/operations/random/cpu_kernels.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

constexpr std::int64_t kMany = 300007;

std::vector<std::int64_t> places(std::int64_t n, std::int64_t extent) {
  std::mt19937_64 random(5);
  std::vector<std::int64_t> values(static_cast<std::size_t>(n));
  for (auto& v : values) {
    v = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * extent)) - extent;
  }
  return values;
}

std::size_t from_front(std::int64_t place, std::int64_t extent) {
  return static_cast<std::size_t>(place < 0 ? place + extent : place);
}

TEST(LargeArrays, AreCopiedAlongAnyStride) {
  for (Dtype dtype : {int8, int16, float32, int64, complex128}) {
    Array a = (xp::arange(2 * kMany, cpu()) % 97).astype(dtype);
    auto values = a.to_vector<std::complex<double>>();
    for (std::int64_t step : {-3, -2, -1, 2, 3}) {
      Array copy = Array(a[Slice(none, none, step)]).copy();
      auto copied = copy.to_vector<std::complex<double>>();
      std::int64_t at = step > 0 ? 0 : 2 * kMany - 1;
      for (const auto& value : copied) {
        ASSERT_EQ(value, values[static_cast<std::size_t>(at)]) << dtype_name(dtype) << step;
        at += step;
      }
      Array target = xp::zeros({2 * kMany}, dtype, cpu());
      target[Slice(none, none, step)] = copy;
      EXPECT_TRUE(xp::array_equal(target[Slice(none, none, step)], copy));
    }
    Array row = a[Slice(1000)], rows = xp::broadcast_to(row, {700, 1000}).copy();
    EXPECT_TRUE(xp::all(rows == row).item<bool>());
    Array columns = xp::broadcast_to(row.expand_dims(1), {1000, 700}).copy();
    EXPECT_TRUE(xp::all(columns == row.expand_dims(1)).item<bool>());
  }
}

TEST(LargeArrays, AreStackedBetweenEachOther) {
  Array a = xp::arange(3 * kMany, float32, cpu()), b = a + 1, both = xp::stack({a, b}, 1);
  EXPECT_TRUE(xp::array_equal(both[{Slice(), 0}], a));
  EXPECT_TRUE(xp::array_equal(both[{Slice(), 1}], b));
  Array twice = xp::repeat(a, 2);
  EXPECT_TRUE(xp::array_equal(twice[Slice(none, none, 2)], a));
  EXPECT_TRUE(xp::array_equal(twice[Slice(1, none, 2)], a));
  Array rows = a.reshape({kMany, 3}), wide = xp::concatenate({rows, rows + 1}, 1);
  EXPECT_TRUE(xp::array_equal(wide[{Slice(), Slice(3)}], rows));
  EXPECT_TRUE(xp::array_equal(wide[{Slice(), Slice(3, 6)}], rows + 1));
}

TEST(LargeArrays, AreIndexedInOrder) {
  constexpr std::int64_t kExtent = 50021;
  std::vector<std::int64_t> index = places(kMany, kExtent);
  std::vector<double> last(kExtent, -1), sums(kExtent, -1);
  for (std::size_t i = 0; i < index.size(); ++i) {
    last[from_front(index[i], kExtent)] = static_cast<double>(i);
    sums[from_front(index[i], kExtent)] += static_cast<double>(i);
  }
  Array j = xp::array(index, cpu()), y = xp::arange(kMany, float64, cpu());
  Array x = xp::full({kExtent}, -1, float64, cpu());
  x[j] = y;
  EXPECT_EQ(x.to_vector<double>(), last);
  auto taken = Array(x[j]).to_vector<double>();
  for (std::size_t i = 0; i < index.size(); ++i) {
    ASSERT_EQ(taken[i], last[from_front(index[i], kExtent)]);
  }
  x.fill(-1);
  xp::scatter_add(x, j, y);
  EXPECT_EQ(x.to_vector<double>(), sums);
}

TEST(LargeArrays, AreNotWrittenWhereAnIndexIsOutOfRange) {
  Array j = xp::arange(kMany, cpu()), x = xp::zeros({kMany}, float32, cpu());
  j[{kMany - 1}] = kMany;
  EXPECT_THROW(x[j] = xp::ones({kMany}, float32, cpu()), IndexError);
  EXPECT_FALSE(xp::any(x).item<bool>());
  EXPECT_THROW((void)x[j].sum(), IndexError);
  j[{kMany - 1}] = -kMany - 1;
  EXPECT_THROW((void)x[j].sum(), IndexError);
}

TEST(LargeArrays, HaveDotProducts) {
  Array a = xp::arange(kMany, cpu()) % 7, b = xp::arange(kMany, cpu()) % 5;
  auto exact = static_cast<double>(xp::sum(a * b).item<std::int64_t>());
  for (Dtype dtype : {float32, float64, complex64, complex128}) {
    Array dot = xp::dot(a.astype(dtype), b.astype(dtype));
    EXPECT_NEAR(dot.item<std::complex<double>>().real(), exact, 1e-5 * exact);
    Array apart =
        xp::dot(a.astype(dtype)[Slice(none, none, 2)], b.astype(dtype)[Slice(none, none, -2)]);
    Array whole = xp::sum(a[Slice(none, none, 2)] * b[Slice(none, none, -2)]);
    EXPECT_NEAR(apart.item<std::complex<double>>().real(), whole.item<double>(), 1e-5 * exact);
  }
  Array rows = a[Slice(300000)].reshape({1000, 300}).astype(float64);
  EXPECT_TRUE(xp::array_equal(xp::vecdot(rows, rows + 1), xp::sum(rows * (rows + 1), 1)));
}

TEST(LargeArrays, AreCounted) {
  for (std::int64_t bins : {30, 5000}) {
    for (Dtype dtype : {uint8, int32, int64, uint64}) {
      if (dtype == uint8 && bins > 255) continue;
      Array values = xp::arange(kMany, cpu()) * 7 % bins;
      std::vector<std::int64_t> expected(static_cast<std::size_t>(bins));
      for (std::int64_t v : values.to_vector<std::int64_t>())
        ++expected[static_cast<std::size_t>(v)];
      EXPECT_EQ(xp::bincount(values.astype(dtype)).to_vector<std::int64_t>(), expected);
    }
  }
  Array negative = xp::arange(kMany, int32, cpu()) - 1;
  EXPECT_THROW(xp::bincount(negative), ValueError);
}

TEST(LargeArrays, HaveOrders) {
  for (std::int64_t n : {std::int64_t{1} << 19, (std::int64_t{1} << 19) + 1, 3 * kMany}) {
    Array order = xp::random::permutation(n, cpu());
    EXPECT_TRUE(xp::array_equal(xp::sort(order), xp::arange(n, cpu())));
    EXPECT_FALSE(xp::array_equal(order, xp::arange(n, cpu())));
  }
}

TEST(CpuKernels, IndicesOfEveryInstructionSetAreTheSame) {
  constexpr std::int64_t kCount = 77, kExtent = 1000;
  std::vector<std::int64_t> index = places(kCount, kExtent), expected(kCount, 5), bounds(2);
  std::vector<std::uint64_t> walked(kCount);
  PseudoOrder order = {};
  order.set_size(kExtent);
  std::iota(order.key, order.key + PseudoOrder::kRounds, 3u);
  for (std::size_t i = 0; i < index.size(); ++i) {
    expected[i] += 12 * static_cast<std::int64_t>(from_front(index[i], kExtent));
    walked[i] = order.step(i);
  }
  for (int set = 0; set <= static_cast<int>(host::best_instruction_set()); ++set) {
    const auto in = static_cast<host::InstructionSet>(set);
    std::vector<std::int64_t> offsets(kCount, 5);
    RENSA_IN_SET(in, get_resolve_kernel)
    ()(kCount, index.data(), kExtent, 12, offsets.data(), bounds.data());
    EXPECT_EQ(offsets, expected);
    auto [least, most] = std::minmax_element(expected.begin(), expected.end());
    EXPECT_EQ(bounds, (std::vector<std::int64_t>{(*least - 5) / 12, (*most - 5) / 12}));
    std::vector<std::uint64_t> walking(kCount);
    std::iota(walking.begin(), walking.end(), 0u);
    RENSA_IN_SET(in, get_random_kernels)().walk(order, kCount, walking.data());
    EXPECT_EQ(walking, walked);
  }
}

}  // namespace
}  // namespace rensa

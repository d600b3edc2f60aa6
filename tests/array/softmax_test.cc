// Softmax and its logarithm against sums in double precision.
#include "rensa/array/softmax.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "rensa/array/random_basics.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::Closeness;
using testing::matches;

// Softmax of the rows of `values`, `columns` long.
std::vector<double> reference(const std::vector<double>& values, std::int64_t columns, bool log) {
  std::vector<double> out(values.size());
  auto width = static_cast<std::size_t>(columns);
  for (std::size_t row = 0; row < values.size(); row += width) {
    double greatest = *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(row),
                                        values.begin() + static_cast<std::ptrdiff_t>(row + width));
    double sum = 0;
    for (std::size_t j = 0; j < width; ++j) sum += std::exp(values[row + j] - greatest);
    for (std::size_t j = 0; j < width; ++j) {
      double shifted = values[row + j] - greatest;
      out[row + j] = log ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  }
  return out;
}

void check(const Array& x, Dtype result) {
  std::int64_t columns = x.shape(-1);
  for (bool log : {false, true}) {
    Array got = log ? xp::log_softmax(x) : xp::softmax(x);
    Array want = xp::array(reference(x.to_vector<double>(), columns, log)).reshape(x.shape());
    double near = std::max(testing::tolerance(result), 1e-6);
    if (result == float64) near = 1e-13;
    EXPECT_TRUE(matches(got.to(cpu()), want.astype(result), {4 * near, log ? 4 * near : 1e-7}))
        << (log ? "log_softmax of " : "softmax of ") << x.view().describe();
    EXPECT_EQ(got.device(), x.device());
  }
}

TEST(Softmax, RowsOfEveryLength) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(3);
    for (Dtype d : {float16, bfloat16, float32, float64}) {
      for (std::int64_t columns : {1, 2, 31, 32, 100, 1024, 1025, 2049, 8192, 8193, 16384, 20001}) {
        check(xp::random::normal(0, 3, {3, columns}, float32, device).astype(d), d);
      }
    }
    check(xp::random::normal(0, 3, {1000, 10}, float32, device), float32);
    check(xp::random::normal(0, 3, {70, 3000}, float32, device), float32);
  }
}

TEST(Softmax, AxesAndStrides) {
  for (Device device : testing::test_devices()) {
    Array x = xp::random::normal(0, 2, {4, 5, 6}, float64, device);
    for (int axis : {0, 1, 2, -2}) {
      Array rows = x.swapaxes(axis, 2).copy();
      Array want = xp::softmax(rows).swapaxes(axis, 2);
      EXPECT_TRUE(matches(xp::softmax(x, axis).to(cpu()), want.to(cpu()), {})) << axis;
    }
    check(x[{Slice(none, none, 2), Slice(), Slice(none, none, -1)}], float64);
    check(xp::arange(12, int32, device).reshape({3, 4}), float64);
  }
}

TEST(Softmax, ExtremesAndNothing) {
  double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (Device device : testing::test_devices()) {
    for (std::int64_t columns : {4, 9000}) {
      Array x = xp::zeros({4, columns}, float32, device);
      x[{0, 1}] = 1e30;
      x[{1, 1}] = -inf;
      x[{2, 1}] = nan;
      x[{3, Slice()}] = -inf;
      Array y = xp::softmax(x);
      auto rest = static_cast<float>(columns - 1);
      EXPECT_EQ((y[{0, 1}].item<float>()), 1.f);
      EXPECT_EQ((y[{1, 1}].item<float>()), 0.f);
      EXPECT_NEAR((y[{1, 2}].item<float>()), 1 / rest, 1e-6);
      EXPECT_TRUE(xp::isnan(y[{Slice(2, 4)}]).all().item<bool>());
    }
    EXPECT_EQ(xp::softmax(xp::zeros({0, 3}, float32, device)).shape(), Shape({0, 3}));
    EXPECT_EQ(xp::softmax(xp::zeros({3, 0}, float32, device)).shape(), Shape({3, 0}));
    Array c = xp::zeros({2}, complex64, device);
    EXPECT_THAT(testing::thrown<DtypeError>([&] { xp::softmax(c); }),
                ::testing::HasSubstr("softmax"));
  }
}

}  // namespace
}  // namespace rensa

// Reductions beyond what numpy_cases_test.cc replays: strides, sizes, empties, NaN, errors.
#include <random>

#include "tests/array/arrays.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

class ReduceTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, ReduceTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

Array random_array(const Shape& shape, Dtype dtype) {
  std::mt19937 engine(7);
  std::uniform_int_distribution<int> distribution(-8, 8);
  V v;
  for (std::int64_t i = 0; i < shape.total(); ++i) v.push_back(distribution(engine) / 4.0);
  return xp::array(v).reshape(shape).astype(dtype);
}

// Sums and maxima over `axes` by walking every element.
void reference(const Array& a, unsigned axes, V* sums, V* maxima) {
  V v = values(a);
  Shape out = a.shape();
  for (int i = 0; i < a.ndim(); ++i) {
    if (axes >> i & 1) out[i] = 1;
  }
  sums->assign(static_cast<std::size_t>(out.total()), 0);
  maxima->assign(static_cast<std::size_t>(out.total()), -1e300);
  for (std::size_t i = 0; i < v.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), position = 0, scale = 1;
    for (int d = a.ndim() - 1; d >= 0; --d) {
      std::int64_t at = rest % a.shape(d);
      rest /= a.shape(d);
      position += (out[d] == 1 ? 0 : at) * scale;
      scale *= out[d];
    }
    (*sums)[static_cast<std::size_t>(position)] += v[i];
    double& maximum = (*maxima)[static_cast<std::size_t>(position)];
    maximum = std::max(maximum, v[i]);
  }
}

TEST_P(ReduceTest, EveryAxisSetOfEveryLayout) {
  for (Dtype dtype : {float32, float64, float16, bfloat16, int32}) {
    Array base = random_array({6, 5, 4}, dtype);
    for (const Array& a : {base, base.T(), Array(base[{Slice(none, none, -2), Slice(1, 4)}]),
                           base[0].broadcast_to({3, 5, 4})}) {
      for (unsigned axes = 1; axes < 8; ++axes) {
        V sums, maxima;
        reference(a, axes, &sums, &maxima);
        std::vector<int> list;
        for (int i = 0; i < 3; ++i) {
          if (axes >> i & 1) list.push_back(i);
        }
        Axes axis = list.size() == 1   ? Axes(list[0])
                    : list.size() == 2 ? Axes{list[0], list[1]}
                                       : Axes{list[0], list[1], list[2]};
        // Quarters are summed exactly in every type but where 16 bits are too few.
        double tolerance = itemsize(dtype) == 2 ? 0.25 : 0;
        V got = values(a.sum(axis));
        ASSERT_EQ(got.size(), sums.size());
        for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], sums[i], tolerance);
        EXPECT_EQ(values(a.max(axis, true)), maxima);
      }
    }
  }
}

TEST_P(ReduceTest, Sizes) {
  for (std::int64_t n : {1, 31, 1000, 4097, 100003}) {
    Array a = xp::arange(n, float64);
    EXPECT_EQ(a.sum().item<double>(), static_cast<double>(n) * static_cast<double>(n - 1) / 2);
    EXPECT_EQ(a.argmax().item<std::int64_t>(), n - 1);
    EXPECT_EQ(xp::ones({n, 3}).sum(0).to_vector<float>(),
              std::vector<float>(3, static_cast<float>(n)));
    EXPECT_EQ(xp::ones({3, n}).sum(1).to_vector<float>(),
              std::vector<float>(3, static_cast<float>(n)));
  }
  // Sums of float32 do not lose what a running sum would.
  float mean = xp::full({1 << 22}, 0.1f, float32).mean().item<float>();
  EXPECT_NEAR(mean, 0.1, 1e-7);
  // Nor does float16 stop at 2048.
  EXPECT_EQ(xp::ones({4000}, float16).sum().item<float>(), 4000);
}

TEST_P(ReduceTest, Empties) {
  Array a = xp::zeros({0, 3});
  EXPECT_EQ(values(a.sum(0)), V({0, 0, 0}));
  EXPECT_EQ(values(a.prod(0)), V({1, 1, 1}));
  EXPECT_EQ(values(a.any(0)), V({0, 0, 0}));
  EXPECT_EQ(values(a.all(0)), V({1, 1, 1}));
  EXPECT_TRUE(std::isnan(a.mean().item<float>()));
  EXPECT_EQ(a.sum(1).shape(), Shape({0}));
  EXPECT_EQ(a.max(1).shape(), Shape({0}));
  EXPECT_NE(thrown<ValueError>([&] { a.max(); }).find("max"), std::string::npos);
  EXPECT_THROW(a.min(0), ValueError);
  EXPECT_THROW(a.argmax(), ValueError);
  EXPECT_THROW(a.argmin(0), ValueError);
}

TEST_P(ReduceTest, NanWins) {
  double nan = std::nan("");
  Array a = xp::array({1., nan, 3., nan});
  EXPECT_TRUE(std::isnan(a.max().item<double>()));
  EXPECT_TRUE(std::isnan(a.min().item<double>()));
  EXPECT_EQ(a.argmax().item<int>(), 1);
  EXPECT_EQ(a.argmin().item<int>(), 1);
  EXPECT_TRUE(a.any().item<bool>());
}

TEST_P(ReduceTest, FirstOfEquals) {
  Array a = xp::array({{3, 7, 7}, {7, 1, 1}});
  EXPECT_EQ(a.argmax().item<int>(), 1);
  EXPECT_EQ(a.argmin().item<int>(), 4);
  EXPECT_EQ(values(a.argmax(1)), V({1, 0}));
  EXPECT_EQ(values(a.argmin(1)), V({0, 1}));
  EXPECT_EQ(values(a.T().argmax(0)), V({1, 0}));
  EXPECT_EQ(a.argmax(0, true).shape(), Shape({1, 3}));
}

TEST_P(ReduceTest, Axes) {
  Array a = xp::ones({2, 3, 4});
  EXPECT_EQ(a.sum({0, -1}).shape(), Shape({3}));
  EXPECT_EQ(a.sum(none).shape(), Shape());
  EXPECT_EQ(a.sum({}, true).shape(), Shape({1, 1, 1}));
  EXPECT_THROW(a.sum(3), IndexError);
  EXPECT_THROW(a.sum({0, -3}), ValueError);
  EXPECT_THROW(a.argmax(-4), IndexError);
  EXPECT_THROW(xp::ones({2}, complex64).max(), DtypeError);
}

TEST_P(ReduceTest, SumTo) {
  Array a = xp::ones({2, 3, 4});
  EXPECT_EQ(values(xp::sum_to(a, {3, 1})), V({8, 8, 8}));
  EXPECT_EQ(xp::sum_to(a, {3, 1}).shape(), Shape({3, 1}));
  EXPECT_EQ(values(xp::sum_to(a, {})), V({24}));
  EXPECT_EQ(xp::sum_to(a, {2, 3, 4}).storage(), a.storage());
  EXPECT_EQ(values(xp::sum_to(xp::ones({1, 3}), {3})), V({1, 1, 1}));
  EXPECT_EQ(xp::sum_to(xp::ones({2, 2}, int8), {2}).dtype(), int8);
  EXPECT_THROW(xp::sum_to(a, {2}), ShapeError);
  EXPECT_THROW(xp::sum_to(xp::ones({3}), {2, 3}), ShapeError);
}

TEST_P(ReduceTest, Comparisons) {
  double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Array a = xp::array({1., inf, -inf});
  EXPECT_TRUE(xp::array_equal(a, a.copy()));
  EXPECT_FALSE(xp::array_equal(a, a.reshape({3, 1})));
  EXPECT_FALSE(xp::array_equal(xp::array({nan}), xp::array({nan})));
  EXPECT_TRUE(xp::allclose(a, a + 1e-9));
  EXPECT_FALSE(xp::allclose(a, -a));
  EXPECT_FALSE(xp::allclose(a, xp::array({1., 5., -inf})));
  EXPECT_FALSE(xp::allclose(xp::array({1., 5., -inf}), a));
  EXPECT_FALSE(xp::allclose(xp::array({nan}), xp::array({nan})));
  EXPECT_FALSE(xp::allclose(xp::array({1.}), xp::array({1.001})));
  EXPECT_TRUE(xp::allclose(xp::array({1.}), xp::array({1.001}), 1e-2));
  EXPECT_TRUE(xp::allclose(xp::array({1, 2}), xp::array({1.f, 2.f})));
}

TEST_P(ReduceTest, Joining) {
  Array a = xp::arange(4).reshape({2, 2}), b = xp::ones({2, 1}, float32);
  Array c = xp::concatenate({a, b}, -1);
  EXPECT_EQ(c.dtype(), float64);
  EXPECT_EQ(values(c), V({0, 1, 1, 2, 3, 1}));
  EXPECT_EQ(values(xp::concatenate({a, a.T()})), V({0, 1, 2, 3, 0, 2, 1, 3}));
  std::vector<Array> rows = {xp::array({1, 2}), xp::array({3, 4})};
  EXPECT_EQ(values(xp::stack(rows)), V({1, 2, 3, 4}));
  EXPECT_EQ(values(xp::stack(rows, -1)), V({1, 3, 2, 4}));
  EXPECT_EQ(xp::concatenate({a, xp::zeros({0, 2}, int64)}).shape(), Shape({2, 2}));
  EXPECT_THROW(xp::concatenate({a, xp::ones({2, 3})}), ShapeError);
  EXPECT_THROW(xp::concatenate({}), ValueError);
  rows.push_back(xp::array({5}));
  EXPECT_THROW(xp::stack(rows), ShapeError);
}

}  // namespace
}  // namespace rensa

// Products: layouts, batches and dtypes, against sums of products in double.
#include <array>
#include <random>

#include "rensa/array/random_basics.h"
#include "tests/array/arrays.h"
#include "tests/num_threads.h"

namespace rensa {
namespace {

using testing::thrown;
using V = std::vector<double>;

V values(const Array& a) { return a.to_vector<double>(); }

class Linalg : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, Linalg, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

// Small integers, so that every product is exact in every type.
Array random_array(const Shape& shape, Dtype dtype, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> distribution(dtype_kind(dtype) == 'u' ? 0 : -2, 2);
  V v;
  for (std::int64_t i = 0; i < shape.total(); ++i) v.push_back(distribution(engine));
  return xp::array(v).reshape(shape).astype(dtype);
}

// a @ b for two matrices.
V product(const Array& a, const Array& b) {
  V x = values(a), y = values(b), z;
  auto k = static_cast<std::size_t>(a.shape(1)), n = static_cast<std::size_t>(b.shape(1));
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.shape(0)); ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t p = 0; p < k; ++p) sum += x[i * k + p] * y[p * n + j];
      z.push_back(sum);
    }
  }
  return z;
}

// The matrix `a` in each of the layouts that a view can have.
std::vector<Array> layouts(const Array& a) {
  std::int64_t m = a.shape(0), n = a.shape(1);
  auto placed = [&](const Array& place) {
    place.assign(a);
    return place;
  };
  return {a,
          a.T().copy().T(),
          placed(xp::zeros({m, n + 3}, a.dtype())[{Slice(), Slice(2, n + 2)}]),
          placed(xp::zeros({m, 2 * n}, a.dtype())[{Slice(), Slice(none, none, 2)}]),
          placed(xp::zeros({m, n}, a.dtype())[Slice(none, none, -1)]),
          placed(xp::zeros({n, 2, m}, a.dtype())[{Slice(), 1}].T())};
}

TEST_P(Linalg, EveryDtypeAndLayout) {
  for (Dtype d :
       {float16, bfloat16, float32, float64, int8, int32, int64, uint8, complex64, complex128}) {
    Array a = random_array({5, 7}, d, 1), b = random_array({7, 3}, d, 2);
    V want = product(a, b);
    for (const Array& x : layouts(a)) {
      for (const Array& y : layouts(b)) {
        Array c = xp::matmul(x, y);
        EXPECT_EQ(c.dtype(), d);
        EXPECT_EQ(c.shape(), Shape({5, 3}));
        EXPECT_EQ(values(c), want) << dtype_name(d);
      }
    }
  }
}

TEST_P(Linalg, BroadcastAndStretchedOperands) {
  Array a = random_array({1, 4}, float32, 1), b = random_array({4, 1}, float32, 2);
  EXPECT_EQ(values(xp::matmul(a.broadcast_to({3, 4}), b)), V(3, product(a, b)[0]));
  EXPECT_EQ(values(xp::matmul(a, b.broadcast_to({4, 2}))), V(2, product(a, b)[0]));
  EXPECT_EQ(values(xp::matmul(b, a)), product(b, a));
}

TEST_P(Linalg, Batches) {
  Array a = random_array({2, 1, 4, 3}, float32, 1), b = random_array({5, 3, 2}, float32, 2);
  Array c = xp::matmul(a, b);
  ASSERT_EQ(c.shape(), Shape({2, 5, 4, 2}));
  Array d = xp::matmul(b.transpose({0, 2, 1}), a.transpose({0, 1, 3, 2}));
  ASSERT_EQ(d.shape(), Shape({2, 5, 2, 4}));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 5; ++j) {
      V want = product(a[{i, 0}], b[j]);
      EXPECT_EQ(values(c[{i, j}]), want);
      EXPECT_EQ(values(d[{i, j}].T()), want);
    }
  }
  Array many = random_array({3, 2, 3}, float64, 3), one = random_array({3, 4}, float64, 4);
  EXPECT_EQ(values(xp::matmul(many, one)[2]), product(many[2], one));
  EXPECT_EQ(values(xp::matmul(many.transpose({0, 2, 1}), one.T()[Slice(0, 2)].T()[Slice(0, 2)])[1]),
            product(many[1].T(), one.T()[Slice(0, 2)].T()[Slice(0, 2)]));
}

TEST_P(Linalg, Sizes) {
  for (int m : {1, 2, 17, 130}) {
    for (int n : {1, 10, 65}) {
      for (int k : {1, 3, 64, 200}) {
        Array a = random_array({m, k}, float32, 1), b = random_array({k, n}, float32, 2);
        EXPECT_EQ(values(xp::matmul(a, b)), product(a, b)) << m << " " << k << " " << n;
      }
    }
  }
  EXPECT_EQ(values(xp::matmul(xp::ones({2, 0}), xp::ones({0, 2}))), V(4, 0));
  EXPECT_EQ(xp::matmul(xp::ones({0, 2}), xp::ones({2, 3})).shape(), Shape({0, 3}));
}

TEST_P(Linalg, Into) {
  Array a = random_array({5, 3}, float32, 1), b = random_array({3, 4}, float32, 2);
  for (const Array& out : layouts(xp::full({5, 4}, -7, float32))) {
    EXPECT_EQ(xp::matmul(a, b, {.out = out}).data(), out.data());
    EXPECT_EQ(values(out), product(a, b));
  }
  Array wide = xp::empty({5, 4}, float64);
  EXPECT_EQ(values(xp::dot(a, b, {.out = wide})), product(a, b));
  EXPECT_EQ(xp::dot(a, b, {.out = wide}).dtype(), float64);
  // Operands that are written over.
  Array square = random_array({4, 4}, float32, 3), before = square.copy();
  xp::matmul(square, square, {.out = square});
  EXPECT_EQ(values(square), product(before, before));
  // One dimension, many matrices, and a number.
  Array row = xp::empty({4}, float32), number = xp::empty({}, float32);
  EXPECT_EQ(values(xp::matmul(a[2], b, {.out = row})), values(xp::matmul(a[2], b)));
  EXPECT_EQ(values(xp::dot(a[1], a[2], {.out = number})), values(xp::dot(a[1], a[2])));
  EXPECT_EQ(values(xp::dot(a[1], xp::array(2.f), {.out = row[Slice(0, 3)]})), values(a[1] * 2));
  Array many = random_array({2, 5, 3}, float32, 4), all = xp::empty({2, 5, 4}, float32);
  EXPECT_EQ(values(xp::matmul(many, b, {.out = all})), values(xp::matmul(many, b)));
  EXPECT_EQ(xp::matmul(many, xp::empty({3, 0}, float32)).shape(), Shape({2, 5, 0}));
  Array few = random_array({2, 1, 3, 4}, float32, 5), parts = xp::empty({2, 2, 5, 4}, float32);
  EXPECT_EQ(values(xp::matmul(many, few, {.out = parts})), values(xp::matmul(many, few)));
  Array crossed = xp::empty({2, 5, 2, 1, 4}, float32);
  EXPECT_EQ(values(xp::dot(many, few, {.out = crossed})), values(xp::dot(many, few)));
  Array tall = xp::full({5, 4}, 9, float32);
  xp::matmul(xp::empty({5, 0}, float32), xp::empty({0, 4}, float32), {.out = tall});
  EXPECT_EQ(values(tall), V(20, 0)) << "sums of nothing";
}

TEST_P(Linalg, IntoWhatIsReadAsWell) {
  Array table = random_array({6, 4}, float32, 6), b = random_array({4, 4}, float32, 7);
  V want = product(table[Slice(0, 5)].copy(), b);
  xp::matmul(table[Slice(0, 5)], b, {.out = table[Slice(1, 6)]});
  EXPECT_EQ(values(table[Slice(1, 6)]), want);
}

TEST_P(Linalg, IntoWhatDoesNotFit) {
  Array a = xp::ones({5, 3}, float32), b = xp::ones({3, 4}, float32);
  auto into = [&](const Array& out) {
    return thrown<Error>([&] { xp::matmul(a, b, {.out = out}); });
  };
  EXPECT_EQ(into(xp::empty({4, 5}, float32)), "matmul: the product has the shape (5, 4), out is " +
                                                  xp::empty({4, 5}, float32).view().describe());
  EXPECT_THROW(xp::matmul(a, b, {.out = xp::empty({1, 5, 4}, float32)}), ShapeError);
  EXPECT_THROW(xp::matmul(a, b, {.out = xp::empty({5, 4}, int32)}), DtypeError);
  EXPECT_THROW(xp::matmul(a, b, {.out = xp::empty({4}, float32).broadcast_to({5, 4})}), ValueError);
  EXPECT_THROW(xp::matmul(a, b, {.out = Array()}), ValueError);
  Array vector = xp::ones({3}, float32), number = xp::array(2.f);
  EXPECT_THROW(xp::dot(vector, number, {.out = xp::empty({2, 3}, float32)}), ShapeError);
}

TEST_P(Linalg, MixedDtypes) {
  Array a = random_array({2, 3}, int32, 1), b = random_array({3, 2}, float32, 2);
  EXPECT_EQ(xp::matmul(a, b).dtype(), float64);
  EXPECT_EQ(values(xp::matmul(a, b)), product(a, b));
}

TEST_P(Linalg, Linear) {
  Array x = random_array({6, 5}, float32, 1), w = random_array({4, 5}, float32, 2),
        b = random_array({4}, float32, 3);
  V want = product(x, w.T());
  EXPECT_EQ(values(xp::linear(x, w, Array())), want);
  V bias = values(b);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += bias[i % 4];
  EXPECT_EQ(values(xp::linear(x, w, b)), want);
  EXPECT_EQ(values(xp::linear(x[Slice(none, none, -1)], w, b)),
            values(xp::linear(x, w, b)[Slice(none, none, -1)]));
  Array wide = xp::zeros({8}, float32);
  wide[Slice(none, none, 2)] = b;
  EXPECT_EQ(values(xp::linear(x, w, wide[Slice(none, none, 2)])), want);
  EXPECT_EQ(values(xp::linear(xp::ones({2, 0}), xp::ones({4, 0}), b)),
            V({bias[0], bias[1], bias[2], bias[3], bias[0], bias[1], bias[2], bias[3]}));
  EXPECT_EQ(xp::linear(xp::ones({0, 5}), w, b).shape(), Shape({0, 4}));
  EXPECT_THROW(xp::linear(x, w.T(), b), ShapeError);
  EXPECT_THROW(xp::linear(x, w, xp::ones({5})), ShapeError);
  EXPECT_THROW(xp::linear(x[0], w, b), ShapeError);
  for (Dtype d : {float16, bfloat16, float64}) {
    EXPECT_EQ(values(xp::linear(x.astype(d), w.astype(d), b.astype(d))), want) << dtype_name(d);
  }
}

TEST_P(Linalg, Dot) {
  Array a = random_array({2, 3, 4}, float64, 1), b = random_array({5, 4, 6}, float64, 2);
  Array c = xp::dot(a, b);
  ASSERT_EQ(c.shape(), Shape({2, 3, 5, 6}));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 5; ++j) {
      EXPECT_EQ(values(c[{i, Slice(), j}]), product(a[i], b[j]));
    }
  }
  EXPECT_EQ(values(xp::array({1, 2}).dot(xp::array({3, 4}))), V({11}));
  EXPECT_EQ(values(xp::dot(a, xp::array(2.))), values(a * 2));
  EXPECT_EQ(xp::dot(xp::ones({2, 0}), xp::ones({0})).shape(), Shape({2}));
}

TEST_P(Linalg, Errors) {
  std::string text = thrown<ShapeError>([] { xp::matmul(xp::ones({2, 3}), xp::ones({2, 3})); });
  EXPECT_NE(text.find("matmul"), text.npos);
  EXPECT_NE(text.find("(2, 3) float32"), text.npos) << text;
  EXPECT_THROW(xp::matmul(xp::ones({2, 2, 3}), xp::ones({3, 3, 4})), ShapeError);
  EXPECT_THROW(xp::matmul(xp::array(1.), xp::ones({2})), ShapeError);
  EXPECT_THROW(xp::dot(xp::ones({2}), xp::ones({3})), ShapeError);
}

// Whichever code computes them on this machine.
TEST(Products, DoNotDependOnTheNumberOfThreads) {
  for (Dtype dtype : {float32, float64, complex64, bfloat16}) {
    for (auto [m, k, n] :
         {std::array<std::int64_t, 3>{8, 27, 1150}, {1001, 40, 9}, {60, 70, 500}}) {
      Array a = xp::random::normal(0, 1, {m, k}, float64, cpu()).astype(dtype);
      Array b = xp::random::normal(0, 1, {k, n}, float64, cpu()).astype(dtype);
      Array want = xp::matmul(a, b);
      for (int threads : {1, 2, 3, 8}) {
        testing::NumThreads scope(threads);
        EXPECT_TRUE(xp::array_equal(xp::matmul(a, b), want)) << dtype_name(dtype) << " " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace rensa

// Normalizations: layouts, mixed dtypes, and what does not fit. Their values are held to recorded
// ones by cases/normalization.cc.
#include "rensa/functions/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

void expect_near(const Array& got, const Array& want, double tolerance) {
  ASSERT_EQ(got.shape(), want.shape());
  auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << i;
  }
}

/// The same values with the channels (axis 1) behind the others in memory.
Array channels_last(const Array& x) {
  return x.transpose({0, 2, 3, 1}).ascontiguous().transpose({0, 3, 1, 2});
}

/// What the function gives for x, and the gradients of x, gamma and beta.
template <class F> Arrays run(const F& f, const Arrays& inputs, const Array& gy) {
  Variables x;
  for (const Array& input : inputs) x.emplace_back(input);
  Variable y = f(x);
  Arrays results{y.array()};
  for (const Variable& g : grad({y}, x, {constant(gy)})) results.push_back(g.array());
  return results;
}

struct Sizes {
  std::int64_t n, c, h, w;
};

using Normalization = std::function<Variable(const Variables&)>;
const Normalization kOfChannels[] = {
    [](const Variables& x) { return F::batch_normalization(x[0], x[1], x[2]); },
    [](const Variables& x) { return F::group_normalization(x[0], 1, x[1], x[2]); },
    [](const Variables& x) { return F::group_normalization(x[0], x[0].shape(1), x[1], x[2]); },
    [](const Variables& x) {
      return F::group_normalization(x[0], x[0].shape(1) % 2 == 0 ? 2 : 1, x[1], x[2]);
    },
};

TEST(Normalization, ChannelsLastIsReadWhereItLies) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64, float16, bfloat16}) {
      double tolerance = dtype == bfloat16 ? 3e-2 : dtype == float16 ? 5e-3 : 2e-5;
      // Vectors of channels, none, many places, one channel, one place.
      for (Sizes s :
           {Sizes{3, 8, 4, 5}, {2, 5, 3, 3}, {4, 16, 17, 19}, {3, 1, 2, 2}, {6, 8, 1, 1}}) {
        Shape shape{s.n, s.c, s.h, s.w};
        SCOPED_TRACE(shape.str() + " of " + std::string(dtype_name(dtype)));
        Array x = xp::random::uniform(-1, 3, shape, float32, device).astype(dtype);
        Array gy = xp::random::uniform(-1, 1, shape, float32, device).astype(dtype);
        Array gamma = xp::random::uniform(1, 2, {s.c}, float32, device), beta = gamma - 1.f;
        for (const Normalization& f : kOfChannels) {
          if (s.h * s.w == 1 && &f != kOfChannels) continue;  // a group of one: all is 0
          Arrays want = run(f, {x, gamma, beta}, gy);
          for (const Array& g : {gy, channels_last(gy)}) {
            Arrays got = run(f, {channels_last(x), gamma, beta}, g);
            EXPECT_EQ(got[0].strides(), channels_last(x).strides());
            EXPECT_EQ(got[1].strides(), channels_last(x).strides());
            EXPECT_EQ(got[0].dtype(), dtype);
            EXPECT_EQ(got[2].dtype(), float32);
            for (std::size_t k = 0; k < got.size(); ++k) expect_near(got[k], want[k], tolerance);
          }
        }
      }
    }
  }
}

// Whole vectors of channels, or their elements one by one where none is aligned: the same bits, of
// numbers with rules of their own as well, and where a thread has many places.
TEST(Normalization, ChannelsLastMayBeginAnywhere) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float kSpecial[] = {std::nanf(""), kInf, -kInf, -0.f, 1e-40f, -1e-39f, 3e38f, 6e-8f};
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64, float16, bfloat16}) {
      for (Sizes s : {Sizes{3, 16, 5, 7}, {2, 264, 9, 4}, {1, 1200, 60, 60}}) {
        Shape shape{s.n, s.h, s.w, s.c};
        SCOPED_TRACE(shape.str() + " of " + std::string(dtype_name(dtype)));
        Array values = xp::arange(shape.total(), float32, device) * 0.37f % 4.f - 1.f;
        for (std::int64_t i = 0; i < 8; ++i) values[Slice(i * 11, i * 11 + 1)] = kSpecial[i];
        Array x = values.astype(dtype), room = xp::empty({x.size() + 1}, dtype, device);
        Array moved = room[Slice(1, none)];
        moved.assign(x);
        Array gamma = xp::arange(s.c, float32, device) * 1e-3f + 1.f, beta = gamma - 0.9f;
        auto bits_of = [&](const Array& lying) {
          Array given = lying.reshape(shape).transpose({0, 3, 1, 2});
          Variable y = F::fixed_batch_normalization(given, gamma, beta, beta, gamma);
          Array flat = y.array().transpose({0, 2, 3, 1}).ascontiguous().reshape({-1});
          return flat.view(uint8).to_vector<std::uint8_t>();
        };
        EXPECT_TRUE(bits_of(x) == bits_of(moved));
      }
    }
  }
}

TEST(Normalization, GradientsOfKernelsAreTheComposedOnes) {
  std::vector<Normalization> functions(std::begin(kOfChannels), std::end(kOfChannels));
  functions.push_back([](const Variables& x) {
    return F::fixed_batch_normalization(x[0], x[1], x[2], x[2], x[1] * x[1]);
  });
  functions.push_back([](const Variables& x) {
    return F::layer_normalization(x[0], F::broadcast_to(F::reshape(x[1], {6, 1, 1}), {6, 3, 5}),
                                  F::broadcast_to(F::reshape(x[2], {6, 1, 1}), {6, 3, 5}));
  });
  functions.push_back([](const Variables& x) {
    return F::rms_norm(x[0], F::broadcast_to(F::reshape(x[1] + x[2], {6, 1, 1}), {6, 3, 5}));
  });
  for (Device device : testing::test_devices()) {
    Array x = xp::random::uniform(-1, 1, {4, 6, 3, 5}, float64, device);
    Array gy = xp::random::uniform(-1, 1, x.shape(), float64, device);
    Array gamma = xp::random::uniform(1, 2, {6}, float64, device), beta = gamma * 0.5;
    for (const Normalization& f : functions) {
      for (const Array& given : {x, channels_last(x)}) {
        Arrays got = run(f, {given, gamma, beta}, gy);
        Variables leaves{given, gamma, beta};
        Variables composed = grad({f(leaves)}, leaves, {constant(gy)}, true);
        EXPECT_NE(composed[0].creator(), nullptr);
        for (std::size_t k = 0; k < composed.size(); ++k) {
          expect_near(got[k + 1], composed[k].array(), 1e-10);
        }
      }
    }
  }
}

// Sizes at which blocks, slices and vectors end in the middle of something.
TEST(Normalization, OfAnySizeIsThatOfFloat64) {
  auto f = [](const Variables& x) { return F::batch_normalization(x[0], x[1], x[2]); };
  for (Device device : testing::test_devices()) {
    xp::random::seed(1);  // five values of a channel may be so close that float32 has few digits
    for (Sizes s : {Sizes{1, 1, 1, 7},
                    {2, 3, 1, 1025},
                    {33, 2, 7, 7},
                    {5, 130, 1, 1},
                    {700, 9, 1, 1},
                    {2, 1, 200, 301}}) {
      Shape shape{s.n, s.c, s.h, s.w};
      SCOPED_TRACE(shape.str());
      Array x = xp::random::uniform(99, 101, shape, float64, device);
      Array gy = xp::random::uniform(-1, 1, shape, float64, device);
      Array gamma = xp::random::uniform(1, 2, {s.c}, float64, device), beta = gamma - 1.;
      x = x.astype(float32).astype(float64);  // the mean takes no digits away
      Arrays want = run(f, {x, gamma, beta}, gy);
      Array far = x - xp::mean(x, {.axis = {0, 2, 3}, .keepdims = true});
      Array y = far / xp::sqrt(xp::mean(far * far, {.axis = {0, 2, 3}, .keepdims = true}) + 2e-5);
      expect_near(want[0], y * gamma.reshape({1, s.c, 1, 1}) + beta.reshape({1, s.c, 1, 1}), 1e-9);
      Arrays arrays;
      for (const Array& a : {x, gamma, beta}) arrays.push_back(a.astype(float32));
      Arrays got = run(f, arrays, gy.astype(float32));
      double tolerance = device.is_cpu() ? 3e-4 : 5e-4;
      for (std::size_t k = 0; k < got.size(); ++k) expect_near(got[k], want[k], tolerance);
    }
  }
}

// Rows of a warp, of a block, and longer ones; whole vectors and others.
TEST(Normalization, RowsOfAnyLengthAreThoseOfFloat64) {
  const Normalization functions[] = {
      [](const Variables& x) { return F::layer_normalization(x[0], x[1], x[2]); },
      [](const Variables& x) {
        return F::rms_norm(x[0], x[1], 1e-5) + F::cast(x[2], x[0].dtype());
      },
  };
  for (Device device : testing::test_devices()) {
    for (std::int64_t columns : {1, 3, 64, 129, 511, 512, 768, 1000, 4096, 4099, 9000}) {
      for (std::int64_t rows : {1, 3, 37}) {
        Array x = xp::random::uniform(9, 11, {rows, columns}, float32, device);
        Array gy = xp::random::uniform(-1, 1, {rows, columns}, float32, device);
        Array gamma = xp::random::uniform(1, 2, {columns}, float32, device), beta = gamma - 1.f;
        for (const Normalization& f : functions) {
          Arrays exact;
          for (const Array& a : {x, gamma, beta}) exact.push_back(a.astype(float64));
          Arrays want = run(f, exact, gy.astype(float64));
          for (Dtype dtype : {float32, float16, bfloat16}) {
            SCOPED_TRACE(x.shape().str() + " of " + std::string(dtype_name(dtype)));
            if (dtype != float32 && columns == 1) continue;  // what is left over is its rounding
            Arrays got = run(f, {x.astype(dtype), gamma, beta}, gy.astype(dtype));
            EXPECT_EQ(got[0].dtype(), dtype);
            EXPECT_EQ(got[1].dtype(), dtype);
            EXPECT_EQ(got[2].dtype(), float32);
            if (dtype != float32) continue;  // x's rounding moves values by more than a bound
            for (std::size_t k = 0; k < got.size(); ++k) expect_near(got[k], want[k], 2e-3);
          }
        }
      }
    }
  }
}

TEST(Normalization, RowsOfHalfTypesAreThoseOfTheirValues) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16}) {
      for (std::int64_t columns : {8, 100, 1024, 1030, 8192, 10000}) {
        Array x = xp::random::uniform(-1, 1, {5, columns}, float32, device).astype(dtype);
        Array gy = xp::random::uniform(-1, 1, {5, columns}, float32, device).astype(dtype);
        Array gamma = xp::random::uniform(1, 2, {columns}, float32, device), beta = gamma - 1.f;
        auto f = [](const Variables& v) { return F::layer_normalization(v[0], v[1], v[2]); };
        Arrays got = run(f, {x, gamma, beta}, gy);
        Arrays want = run(f, {x.astype(float64), gamma.astype(float64), beta.astype(float64)},
                          gy.astype(float64));
        for (std::size_t k = 0; k < got.size(); ++k) {
          expect_near(got[k], want[k], k > 1 ? 1e-4 : dtype == float16 ? 2e-3 : 1e-2);
        }
      }
    }
  }
}

TEST(Normalization, WhatDoesNotFitIsTold) {
  Variable x = xp::ones({2, 3, 4}), three = xp::ones({3}), four = xp::ones({4});
  EXPECT_THROW(F::batch_normalization(x, four, four), ShapeError);
  EXPECT_THROW(F::batch_normalization(x, three, four), ShapeError);
  EXPECT_THROW(F::batch_normalization(xp::ones({}), three, three), ShapeError);
  EXPECT_THROW(F::batch_normalization(x, three, xp::ones({3}, float64)), DtypeError);
  EXPECT_THROW(F::batch_normalization(xp::ones({2, 3}, int32), three, three), DtypeError);
  EXPECT_THROW(F::batch_normalization(x, three, three, {.axis = {0, 3}}), IndexError);
  EXPECT_THROW(F::batch_normalization(x, three, three, {.axis = {0, -3}}), ValueError);
  EXPECT_THROW(F::batch_normalization(x, three, three, {.running_mean = three.array()}),
               ValueError);
  EXPECT_THROW(F::batch_normalization(x, three, three,
                                      {.running_mean = four.array(), .running_var = four.array()}),
               ShapeError);
  EXPECT_THROW(F::fixed_batch_normalization(x, three, three, four, three), ShapeError);
  EXPECT_THROW(F::batch_renormalization(x, three, three, 1, 0, {}), ValueError);
  EXPECT_THROW(
      F::batch_renormalization(x, three, three, 0.5, 0,
                               {.running_mean = three.array(), .running_var = three.array()}),
      ValueError);
  EXPECT_THROW(F::layer_normalization(x, three, three), ShapeError);
  EXPECT_THROW(F::layer_normalization(x, four, three), ShapeError);
  EXPECT_THROW(F::rms_norm(x, three), ShapeError);
  EXPECT_THROW(F::rms_norm(xp::ones({2}, int32)), DtypeError);
  EXPECT_THROW(F::group_normalization(x, 2, three, three), ValueError);
  EXPECT_THROW(F::group_normalization(x, 1, four, four), ShapeError);
  EXPECT_THROW(F::normalize(x, 1e-5, 3), IndexError);
  EXPECT_THROW(F::local_response_normalization(four), ShapeError);
  EXPECT_THROW(F::local_response_normalization(x, 0), ValueError);
  try {
    F::batch_normalization(x, four, four);
  } catch (const ShapeError& error) {
    EXPECT_STREQ(
        error.what(),
        "batch_normalization: gamma (4,) and x (2, 3, 4): gamma must have the shape of x's "
        "axes that are not reduced, (3,)");
  }
}

TEST(Normalization, OfNoSamplesGiveNone) {
  for (Device device : testing::test_devices()) {
    Array x = xp::ones({0, 4, 2}, float32, device), four = xp::ones({4}, float32, device);
    Array two = xp::ones({2}, float32, device);
    Arrays got = run([](const Variables& v) { return F::group_normalization(v[0], 2, v[1], v[2]); },
                     {x, four, four}, x);
    EXPECT_EQ(got[1].shape(), x.shape());
    EXPECT_EQ(got[2].to_vector<float>(), std::vector<float>(4, 0));
    got = run([](const Variables& v) { return F::layer_normalization(v[0], v[1], v[2]); },
              {x, two, two}, x);
    EXPECT_EQ(got[1].shape(), x.shape());
    EXPECT_EQ(got[3].to_vector<float>(), std::vector<float>(2, 0));
    EXPECT_EQ(F::local_response_normalization(x).shape(), x.shape());
  }
}

// Rows of 16 bits that lie together have a pass of their own; others do not.
TEST(Normalization, NormalizeOfNarrowDtypes) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16}) {
      for (const Shape& shape :
           {Shape{5, 1, 1}, Shape{7, 3, 5}, Shape{300, 2, 64}, Shape{2, 70001}}) {
        Array x = xp::random::normal(0, 1, shape, float32, device).astype(dtype);
        double tolerance = dtype == float16 ? 2e-3 : 1e-2;
        for (Axes axes : {Axes(1), Axes(0), Axes({1, 2}), Axes(-1), Axes()}) {
          if (shape.ndim() == 2 && axes.mask("normalize", 3) == 6u) continue;  // axes 1 and 2
          for (const Array& part :
               {x, Array(x[Slice(1, none)]), Array(x[{ellipsis, Slice(0, 1)}])}) {
            Array got = F::normalize(part, 0.25, axes).array();
            Array want = F::normalize(part.astype(float64), 0.25, axes).array();
            EXPECT_EQ(got.dtype(), dtype);
            expect_near(got, want, tolerance);
          }
        }
      }
    }
  }
}

// Two passes over rows that lie together, where the gradient is not recorded; some rows are zero.
TEST(Normalization, GradientsOfNormalizedRows) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float64, float32, bfloat16, float16}) {
      double tolerance = dtype == float64   ? 1e-12
                         : dtype == float32 ? 4e-6
                         : dtype == float16 ? 4e-3
                                            : 2e-2;
      for (const Shape& shape :
           {Shape{5, 1}, Shape{7, 3, 5}, Shape{300, 2, 64}, Shape{2, 70001}, Shape{3, 1, 1024}}) {
        for (Axes axes : {Axes(1), Axes(0), Axes({1, 2}), Axes(-1), Axes({0, 1})}) {
          if (shape.ndim() == 2 && axes.mask("normalize", 3) == 6u) continue;  // axes 1 and 2
          SCOPED_TRACE(shape.str() + " " + std::string(dtype_name(dtype)) + " " + device.str());
          Array x = xp::random::normal(0, 1, shape, float32, device).astype(dtype);
          Array gy = xp::random::normal(0, 1, shape, float32, device).astype(dtype);
          x[1].fill(0);
          Variable exact(x.astype(float64)), y = F::normalize(exact, 0.25, axes);
          Array want = grad({y}, {exact}, {constant(gy.astype(float64))}, true)[0].array();
          for (const Array& given : {gy, gy.T().copy().T()}) {
            Array got = run([&](const Variables& v) { return F::normalize(v[0], 0.25, axes); }, {x},
                            given)[1];
            EXPECT_EQ(got.dtype(), dtype);
            expect_near(got.astype(float64), want, tolerance);
          }
        }
      }
    }
  }
}

// One kernel each way, where the gradient is not recorded; windows that reach beyond all channels,
// and too many of them for the kernel.
TEST(Normalization, LocalResponsesAreThoseOfTheirFormula) {
  constexpr double k = 1.5, alpha = 0.2, beta = 0.75;
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float64, float32, bfloat16, float16}) {
      double tolerance = dtype == float64   ? 1e-12
                         : dtype == float32 ? 4e-6
                         : dtype == float16 ? 2e-3
                                            : 2e-2;
      for (const Shape& shape :
           {Shape{2, 7, 5, 3}, Shape{3, 1, 2, 2}, Shape{2, 40, 9, 31}, Shape{1, 90, 1, 1}}) {
        for (std::int64_t n : {1, 4, 5, 13, 75}) {
          SCOPED_TRACE(shape.str() + " " + std::to_string(n) + " " + device.str());
          Array x = xp::random::normal(0, 1, shape, float32, device).astype(dtype);
          Array gy = xp::random::normal(0, 1, shape, float32, device).astype(dtype);
          Array wide = x.astype(float64), scale = xp::full_like(wide, k);
          std::int64_t channels = shape[1], half = n / 2;
          for (std::int64_t by = -half; by <= half; ++by) {
            Slice to(std::max<std::int64_t>(-by, 0), std::min(channels - by, channels));
            Slice from(std::max<std::int64_t>(by, 0), std::min(channels + by, channels));
            if (std::abs(by) >= channels) continue;
            Array near = wide[{Slice(), from}];
            scale[{Slice(), to}] += alpha * near * near;
          }
          Array want = wide * xp::power(scale, -beta);
          auto function = [&](const Variable& v) {
            return F::local_response_normalization(v, n, k, alpha, beta);
          };
          Variable exact(wide), y = function(exact);
          Array gradient = grad({y}, {exact}, {constant(gy.astype(float64))}, true)[0].array();
          for (const Array& form : {x, channels_last(x)}) {
            Arrays got = run([&](const Variables& v) { return function(v[0]); }, {form}, gy);
            for (const Array& a : got) EXPECT_EQ(a.dtype(), dtype);
            bool laid_out = shape[1] > 1 && shape[2] > 1;  // else other strides say the same
            EXPECT_TRUE(!laid_out || got[0].strides() == form.strides());
            expect_near(got[0].astype(float64), want, tolerance);
            expect_near(got[1].astype(float64), gradient, tolerance);
          }
        }
      }
    }
  }
}

TEST(Normalization, ANormOfZeroHasAGradient) {
  Variable x = xp::zeros({2, 3});
  Variable g = grad({F::normalize(x, 0.5)}, {x}, {constant(xp::ones({2, 3}))})[0];
  EXPECT_EQ(g.array().to_vector<float>(), std::vector<float>(6, 2));
}

TEST(Normalization, AnEmptyBatchMovesNoAverages) {
  Array mean = xp::full({3}, 2.f), var = xp::full({3}, 3.f);
  Variable ones = xp::ones({3});
  Variable y = F::batch_normalization(xp::ones({0, 3, 2}), ones, ones,
                                      {.running_mean = mean, .running_var = var});
  EXPECT_EQ(y.shape(), (Shape{0, 3, 2}));
  EXPECT_EQ(mean.to_vector<float>(), std::vector<float>(3, 2));
  EXPECT_EQ(var.to_vector<float>(), std::vector<float>(3, 3));
}

// The memory that they find held NaN before.
TEST(Normalization, GradientsOfNothingAreZero) {
  for (Device device : testing::test_devices()) {
    for (const Shape& shape : {Shape{0, 4, 2}, Shape{2, 4, 0}}) {
      for (bool groups : {false, true}) {
        std::vector<Array> used;
        for (int i = 0; i < 16; ++i)
          used.push_back(xp::full({i % 2 == 0 ? 4 : 8}, NAN, float32, device));
        used.clear();
        Variable x(xp::ones(shape, float32, device)), gamma(xp::ones({4}, float32, device)),
            beta(xp::ones({4}, float32, device));
        Variable y = groups ? F::group_normalization(x, 2, gamma, beta)
                            : F::batch_normalization(x, gamma, beta);
        y.set_grad(xp::ones(shape, float32, device));
        y.backward();
        EXPECT_EQ(gamma.grad().to_vector<float>(), std::vector<float>(4, 0)) << shape.str();
        EXPECT_EQ(beta.grad().to_vector<float>(), std::vector<float>(4, 0)) << shape.str();
      }
    }
  }
}

}  // namespace
}  // namespace rensa

// Poolings: layouts, equal bits of overlapping windows, and what does not fit. Their values are
// held to recorded ones by cases/pooling.cc.
#include "rensa/functions/pooling.h"

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

Array channels_last(const Array& x) {
  return x.transpose({0, 2, 3, 1}).ascontiguous().transpose({0, 3, 1, 2});
}

/// y, gx and the second derivative's ggy of a pooling.
using Pooling = std::function<Variable(const Variable&)>;
Arrays run(const Pooling& f, const Array& given, const Array& direction) {
  Variable x = given, y = f(x), gy = xp::ones_like(y.array());
  Variable gx = grad({y}, {x}, {gy}, true)[0];
  Variable ggy = grad({gx}, {gy}, {constant(direction)})[0];
  return {y.array(), gx.array(), ggy.array()};
}

const Pooling kPoolings[] = {
    [](const Variable& x) { return F::max_pooling_2d(x, 3, 2, 1); },
    [](const Variable& x) { return F::max_pooling_2d(x, 20, 1, 10); },  // positions of 32 bits
    [](const Variable& x) {
      return F::max_pooling_2d(x, 70, 3, 35);
    },  // more places than a table has
    [](const Variable& x) {
      return F::average_pooling_2d(x, {2, 3}, 1, 1);
    },
    [](const Variable& x) { return F::average_pooling_2d(x, 3, 2, 1, std::nullopt); },
    [](const Variable& x) {
      return F::adaptive_max_pooling_2d(x, {2, 7});
    },
    [](const Variable& x) { return F::adaptive_average_pooling_2d(x, 3); },
    [](const Variable& x) { return F::unpooling_2d(x, 3, 2, 1); },
    [](const Variable& x) { return F::unpooling_2d(x, 2, 2, 0, {}, false); },
    [](const Variable& x) {
      return F::adaptive_average_pooling_2d(x, {3, 20});
    },
    [](const Variable& x) {
      return F::max_pooling_2d(x, {1, 3}, {1, 5}, 0, false);
    },
    // Windows in steps of two.
    [](const Variable& x) { return F::max_pooling_2d(x, 2); },
    [](const Variable& x) { return F::max_pooling_2d(x, 3, 2, 1, false); },
    [](const Variable& x) { return F::max_pooling_2d(x, 3, 2, 0); },
    [](const Variable& x) { return F::average_pooling_2d(x, 2); },
    [](const Variable& x) {
      return F::average_pooling_2d(x, 3, {1, 2}, 1);
    },
    [](const Variable& x) { return F::unpooling_2d(x, 3, 2, 0); },
    [](const Variable& x) {
      const Array& values = x.array();  // positions, of which 4 is none of the window's
      Array positions = xp::remainder(xp::arange(values.size(), int64, values.device()), 5);
      return F::upsampling_2d(x, positions.reshape(values.shape()), 2, 2, 0, {}, false);
    },
};

TEST(Poolings, ChannelsLastIsReadWhereItLies) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64, float16, bfloat16}) {
      // Vectors of channels and single ones.
      for (std::int64_t channels : {1, 5, 16, 40, 83}) {
        Shape shape{2, channels, 6, 5};
        Array x = xp::random::uniform(-1, 1, shape, float32, device).astype(dtype);
        Array direction = xp::random::uniform(-1, 1, shape, float32, device).astype(dtype);
        for (const Pooling& f : kPoolings) {
          Arrays want = run(f, x, direction),
                 got = run(f, channels_last(x), channels_last(direction));
          for (std::size_t k = 0; k < want.size(); ++k) {
            SCOPED_TRACE(want[0].view().describe() + " " + std::to_string(k));
            EXPECT_EQ(got[k].dtype(), dtype);
            EXPECT_TRUE(xp::array_equal(got[k], want[k]));
            EXPECT_EQ(got[k].strides(), channels_last(got[k]).strides());
          }
        }
      }
    }
  }
}

// Of equal elements the first one counts, of NaN too, and of what is infinitely small none: for
// windows along a row, few of them, and channels last, which are loops of their own.
TEST(Poolings, PositionsOfTheGreatestDoNotDependOnTheLayout) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64, float16}) {
      for (std::int64_t size : {3, 9, 40}) {
        Shape shape{1, 83, 7, size};
        Array x = xp::random::randint(-1, 3, shape, int64, device).astype(dtype);
        Array kind = xp::random::randint(0, 12, shape, int64, device);
        x = xp::where(kind == 0, xp::full(shape, NAN, dtype, device), x);
        x = xp::where(kind > 7, xp::full(shape, -infinity, dtype, device), x);
        for (std::int64_t window : {2, 3}) {
          Array want, got;
          Array y = F::max_pooling_2d(x, window, 2, 1, true, &want).array();
          Array z = F::max_pooling_2d(channels_last(x), window, 2, 1, true, &got).array();
          EXPECT_TRUE(xp::array_equal(y, z, true)) << size << ", " << window;
          EXPECT_TRUE(xp::array_equal(want, got)) << size << ", " << window;
        }
      }
    }
  }
}

// Whichever device adds, it adds in the same order; rows of vectors and others.
TEST(Poolings, HaveEqualBitsOnAllDevices) {
  for (const Shape& shape : {Shape{3, 4, 33, 35}, Shape{2, 3, 5, 32}, Shape{2, 3, 7, 12}}) {
    for (Dtype dtype : {float32, float64, float16, bfloat16}) {
      SCOPED_TRACE(shape.str() + " " + std::string(dtype_name(dtype)));
      Array x = xp::random::uniform(-1, 1, shape, float32, cpu()).astype(dtype);
      Array direction = xp::random::uniform(-1, 1, shape, float32, cpu()).astype(dtype);
      for (const Pooling& f : kPoolings) {
        Arrays want = run(f, x, direction);
        for (Device device : testing::test_devices()) {
          Arrays got = run(f, x.to(device), direction.to(device));
          for (std::size_t k = 0; k < want.size(); ++k) {
            EXPECT_TRUE(xp::array_equal(got[k].to_cpu(), want[k])) << k;
          }
        }
      }
    }
  }
}

TEST(Poolings, TheGreatestMayBeNaN) {
  for (Device device : testing::test_devices()) {
    Array x = xp::array({{{{1.f, NAN, 3.f, 4.f}}}}).to(device);
    auto y = F::max_pooling_2d(x, {1, 2}).array().to_vector<float>();
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], 4);
  }
}

TEST(Poolings, OfNoSamplesGiveNone) {
  for (Device device : testing::test_devices()) {
    Variable x = xp::ones({0, 3, 4, 4}, float32, device);
    EXPECT_EQ(F::max_pooling_2d(x, 2).shape(), (Shape{0, 3, 2, 2}));
    EXPECT_EQ(F::average_pooling_2d(x, 2).shape(), (Shape{0, 3, 2, 2}));
    EXPECT_EQ(F::unpooling_2d(x, 2).shape(), (Shape{0, 3, 7, 7}));
  }
}

/// The shape and the values: two poolings of different windows differ in one of them.
std::pair<Shape, std::vector<float>> outcome(const Variable& y) {
  return {y.shape(), y.array().to_vector<float>()};
}

TEST(Poolings, PaddingMayTakeAllOfWhatUnpoolingGives) {
  for (Device device : testing::test_devices()) {
    Variable x = xp::ones({2, 3, 3, 2}, float32, device);
    Variable y = F::unpooling_nd(x, 1, {.stride = 1, .pad = 1});
    EXPECT_EQ(y.shape(), (Shape{2, 3, 1, 0}));
    F::sum(y).backward();
    EXPECT_TRUE(xp::array_equal(x.grad(), xp::zeros_like(x.array()))) << device;
    EXPECT_THROW(F::unpooling_nd(x, 1, {.stride = 1, .pad = 2}), ShapeError);
  }
}

TEST(Poolings, KeywordsAreTheArgumentsByTheirNames) {
  Variable line(xp::random::uniform(-2, -1, {2, 2, 7}, float32, cpu()));
  Variable plane(xp::random::uniform(-2, -1, {2, 2, 7, 8}, float32, cpu()));
  Variable space(xp::random::uniform(-2, -1, {1, 2, 7, 8, 6}, float32, cpu()));
  auto same = [](const Variable& a, const Variable& b) { EXPECT_EQ(outcome(a), outcome(b)); };
  Array indices, wanted;
  same(F::max_pooling_1d(line, 3, {.stride = 2, .pad = 1}), F::max_pooling_1d(line, 3, 2, 1));
  same(F::max_pooling_2d(plane, 3, {.stride = 2}), F::max_pooling_2d(plane, 3, 2));
  same(F::max_pooling_2d(plane, 3, {.pad = 1}), F::max_pooling_2d(plane, 3, {}, 1));
  same(F::max_pooling_2d(plane, {3, 2}, {.stride = {1, 3}, .pad = {1, 0}, .cover_all = false}),
       F::max_pooling_2d(plane, {3, 2}, {1, 3}, {1, 0}, false));
  Variable pooled = F::max_pooling_2d(plane, 3, {.stride = 2, .return_indices = &indices});
  same(pooled, F::max_pooling_2d(plane, 3, 2, 0, true, &wanted));
  EXPECT_TRUE(xp::array_equal(indices, wanted));
  same(F::max_pooling_3d(space, 2, {.stride = 3}), F::max_pooling_3d(space, 2, 3));
  same(F::max_pooling_nd(space, 2, {.stride = 3}), F::max_pooling_nd(space, 2, 3));

  same(F::average_pooling_1d(line, 3, {.stride = 2, .pad = 1}),
       F::average_pooling_1d(line, 3, 2, 1));
  same(F::average_pooling_2d(plane, 3, {.stride = 2, .pad = 1, .pad_value = std::nullopt}),
       F::average_pooling_2d(plane, 3, 2, 1, std::nullopt));
  same(F::average_pooling_3d(space, 2, {.pad = 1}), F::average_pooling_3d(space, 2, {}, 1));
  same(F::average_pooling_nd(space, 2, {.stride = 3}), F::average_pooling_nd(space, 2, 3));

  same(F::unpooling_1d(line, 3, {.stride = 2, .cover_all = false}),
       F::unpooling_1d(line, 3, 2, 0, {}, false));
  same(F::unpooling_2d(plane, 2, {.outsize = {13, 15}}),
       F::unpooling_2d(plane, 2, {}, 0, {13, 15}));
  same(F::unpooling_3d(space, 2, {.stride = 1}), F::unpooling_3d(space, 2, 1));
  same(F::unpooling_nd(space, 2, {.stride = 1, .pad = 1}), F::unpooling_nd(space, 2, 1, 1));
  same(F::upsampling_2d(pooled, indices, 3, {.stride = 2, .outsize = {7, 8}}),
       F::upsampling_2d(pooled, indices, 3, 2, 0, {7, 8}));
}

TEST(Poolings, WhatDoesNotFitIsTold) {
  Variable x = xp::ones({1, 2, 4, 4});
  EXPECT_THROW(F::max_pooling_2d(x, 6, 1), ShapeError);
  EXPECT_THROW(F::average_pooling_2d(x, 5), ShapeError);
  EXPECT_THROW(F::max_pooling_1d(x, 2), ShapeError);
  EXPECT_THROW(F::max_pooling_nd(xp::ones({1, 2}), 2), ShapeError);
  EXPECT_THROW(F::max_pooling_2d(x, 0), ValueError);
  EXPECT_THROW(F::max_pooling_2d(x, 2, 0), ValueError);
  EXPECT_THROW(F::max_pooling_2d(x, 2, 2, -1), ValueError);
  EXPECT_THROW(F::max_pooling_2d(x, {2, 2, 2}), ValueError);
  EXPECT_THROW(F::average_pooling_2d(x, 2, 2, 0, 1.0), ValueError);
  // Windows of padding only have no mean of what they cover.
  EXPECT_THROW(F::average_pooling_2d(x, 2, 2, 2, std::nullopt), ShapeError);
  EXPECT_THROW(F::average_pooling_2d(x, 3, 4, {0, 3}, std::nullopt), ShapeError);
  EXPECT_NO_THROW(F::average_pooling_2d(x, 2, 3, 1, std::nullopt));
  EXPECT_NO_THROW(F::average_pooling_2d(x, 2, 2, 2));
  EXPECT_THROW(F::max_pooling_2d(xp::ones({1, 2, 4, 4}, int32), 2), DtypeError);
  EXPECT_THROW(F::unpooling_2d(x, 2, 2, 0, {9, 9}), ShapeError);
  EXPECT_THROW(F::upsampling_2d(x, xp::zeros({1, 2, 4, 3}, int32), 2), ShapeError);
  EXPECT_THROW(F::upsampling_2d(x, xp::zeros({1, 2, 4, 4}), 2), DtypeError);
  EXPECT_THROW(F::adaptive_average_pooling_2d(x, 0), ValueError);
  EXPECT_THROW(F::spatial_pyramid_pooling_2d(x, 0), ValueError);
  try {
    F::average_pooling_2d(x, 7, 1, 1);
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "average_pooling_2d: a window of 7 and x (1, 2, 4, 4): along axis 2 it is larger "
                 "than 4 elements with 1 of padding on both sides");
  }
}

}  // namespace
}  // namespace rensa

// Rows of pointwise.def as operations: layouts, dtypes and numbers of every operand.
#include "rensa/array/pointwise.h"

#include <gtest/gtest.h>

#include <cstring>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/hyperbolic.h"
#include "rensa/core/error.h"
#include "rensa/operations/pointwise/pointwise_rows.h"
#include "tests/array/arrays.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Arguments = std::vector<xp::ElementwiseArgument>;

std::string bytes_of(const Array& a) {
  Array host = a.ascontiguous().get();
  return std::string(static_cast<const char*>(host.data()),
                     static_cast<std::size_t>(host.nbytes()));
}

/// gy * y * (1 - y) by the routines, each of which rounds as the row's statement does.
Array sigmoid_grad(const Array& y, const Array& gy) { return gy * y * (1 - y); }

TEST(Pointwise, TheBitsOfTheRoutines) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64}) {
      for (std::int64_t n : {1, 3, 31, 32, 33, 511, 1024, 4099, 100003, 1000003}) {
        Array y = xp::random::uniform(0, 1, {n}, float64, device).astype(dtype);
        Array gy = xp::random::normal(0, 1, {n}, float64, device).astype(dtype);
        Array got = detail::pointwise(pointwise::sigmoid_grad, Arguments{y, gy})[0];
        EXPECT_EQ(got.dtype(), dtype);
        EXPECT_EQ(bytes_of(got), bytes_of(sigmoid_grad(y, gy))) << n << " " << dtype_name(dtype);
        EXPECT_EQ(bytes_of(detail::pointwise(pointwise::tanh, Arguments{gy})[0]),
                  bytes_of(xp::tanh(gy)));
      }
    }
  }
}

TEST(Pointwise, AnyLayout) {
  for (Device device : testing::test_devices()) {
    Array y = xp::random::uniform(0, 1, {37, 41}, float32, device);
    Array gy = xp::random::normal(0, 1, {37, 41}, float32, device);
    auto turned = [](const Array& a) { return a.T().copy().T(); };
    auto spread = [&](const Array& a) {
      Array wide = xp::zeros({37, 82}, float32, device);
      wide[{ellipsis, Slice(1, none, 2)}] = a;
      return Array(wide[{ellipsis, Slice(1, none, 2)}]);
    };
    auto shifted = [&](const Array& a) {  // flat, and no vector lies at a multiple of its size
      Array longer = xp::zeros({37 * 41 + 1}, float32, device);
      longer[Slice(1, none)] = a.ravel();
      return Array(longer[Slice(1, none)]).reshape({37, 41});
    };
    Array want = sigmoid_grad(y, gy);
    for (auto a : {y, turned(y), spread(y), shifted(y)}) {
      for (auto b : {gy, turned(gy), spread(gy), shifted(gy)}) {
        EXPECT_EQ(bytes_of(detail::pointwise(pointwise::sigmoid_grad, Arguments{a, b})[0]),
                  bytes_of(want));
        Array out = spread(xp::zeros_like(y));
        detail::pointwise_into(pointwise::sigmoid_grad, Arguments{a, b}, std::vector<Array>{out});
        EXPECT_EQ(bytes_of(out), bytes_of(want));
      }
    }
    Array place = gy.copy();  // an output may be an input
    detail::pointwise_into(pointwise::sigmoid_grad, Arguments{y, place}, std::vector<Array>{place});
    EXPECT_EQ(bytes_of(place), bytes_of(want));
  }
}

TEST(Pointwise, BroadcastsAndTakesNumbers) {
  for (Device device : testing::test_devices()) {
    Array y = xp::random::uniform(0, 1, {300, 1}, float32, device);
    Array gy = xp::random::normal(0, 1, {257}, float32, device);
    Array got = detail::pointwise(pointwise::sigmoid_grad, Arguments{y, gy})[0];
    EXPECT_EQ(bytes_of(got), bytes_of(sigmoid_grad(y, gy)));
    got = detail::pointwise(pointwise::sigmoid_grad, Arguments{y, 0.75})[0];
    EXPECT_EQ(got.shape(), y.shape());
    EXPECT_EQ(bytes_of(got), bytes_of(sigmoid_grad(y, xp::array(0.75f, device))));
    EXPECT_EQ(detail::pointwise(pointwise::tanh, Arguments{xp::zeros({0, 3}, float32, device)})[0]
                  .shape(),
              (Shape{0, 3}));
    EXPECT_EQ(detail::pointwise(pointwise::tanh, Arguments{xp::array(1.f, device)})[0].shape(),
              Shape());
  }
}

TEST(Pointwise, DtypesMeetInAFloatingOne) {
  for (Device device : testing::test_devices()) {
    Array half = xp::random::uniform(0, 1, {1000}, float64, device).astype(float16);
    Array brain = half.astype(bfloat16), single = half.astype(float32);
    Array twice = single.astype(float64), integer = xp::arange(1000, int16, device);
    auto dtype_of = [&](const Array& a, const Array& b) {
      return detail::pointwise(pointwise::sigmoid_grad, Arguments{a, b})[0].dtype();
    };
    EXPECT_EQ(dtype_of(half, half), float16);
    EXPECT_EQ(dtype_of(half, brain), float32);
    EXPECT_EQ(dtype_of(half, single), float32);
    EXPECT_EQ(dtype_of(single, twice), float64);
    EXPECT_EQ(dtype_of(integer, half), float32);
    for (const Array& a : {half, brain}) {  // computed in float, rounded once
      Array got = detail::pointwise(pointwise::sigmoid_grad, Arguments{a, a})[0];
      Array wide = a.astype(float32);
      EXPECT_EQ(bytes_of(got), bytes_of(sigmoid_grad(wide, wide).astype(a.dtype())));
    }
    Array mixed = detail::pointwise(pointwise::sigmoid_grad, Arguments{single, half})[0];
    EXPECT_EQ(bytes_of(mixed), bytes_of(sigmoid_grad(single, half.astype(float32))));
  }
}

TEST(Pointwise, WrongOperandsAreNamed) {
  Array a = xp::ones({2, 3}), b = xp::ones({4});
  EXPECT_NE(testing::thrown<ShapeError>([&] {
              detail::pointwise(pointwise::sigmoid_grad, Arguments{a, b});
            }).find("sigmoid_grad"),
            std::string::npos);
  EXPECT_THROW(detail::pointwise(pointwise::sigmoid_grad, Arguments{a}), ValueError);
  EXPECT_THROW(detail::pointwise(pointwise::sigmoid_grad, Arguments{1.0, 2.0}), ValueError);
  EXPECT_THROW(detail::pointwise(pointwise::sigmoid, Arguments{a.astype(complex64)}), DtypeError);
  EXPECT_THROW(detail::pointwise_into(pointwise::sigmoid, Arguments{a}, std::vector<Array>{b}),
               ShapeError);
}

}  // namespace
}  // namespace rensa

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

/// Columns of a wider matrix, from column `begin`.
Array columns_of(const Array& a, std::int64_t begin) {
  Array wide = xp::zeros({a.shape(0), a.shape(1) + begin + 3}, a.dtype(), a.device());
  Array part = wide[{ellipsis, Slice(begin, begin + a.shape(1))}];
  part[ellipsis] = a;
  return part;
}

// Sizes for vectors of one element and of more, rows that those divide and others, and slices at
// addresses of any alignment.
TEST(Pointwise, ColumnsOfMatrices) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      for (auto [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {2, 1}, {20, 650}, {3, 65}, {130, 1304}, {131, 1302}, {129, 1301}, {70000, 2}}) {
        if (testing::quick() && rows * columns > 20000) continue;
        Shape shape{rows, columns};
        Array y = xp::random::uniform(0, 1, shape, float64, device).astype(dtype);
        Array gy = xp::random::normal(0, 1, shape, float64, device).astype(dtype);
        auto of = [](Arguments in) { return detail::pointwise(pointwise::sigmoid_grad, in)[0]; };
        std::string want = bytes_of(of({y, gy}));
        for (std::int64_t begin : {0, 1, 2, 8}) {
          Array a = columns_of(y, begin);
          Array wide = xp::zeros({rows, columns + begin + 3}, dtype, device);
          Array out = wide[{ellipsis, Slice(begin, begin + columns)}];
          EXPECT_EQ(bytes_of(of({a, gy})), want) << shape.str() << " from " << begin;
          detail::pointwise_into(pointwise::sigmoid_grad, Arguments{a, gy}, std::vector{out});
          EXPECT_EQ(bytes_of(out), want) << shape.str() << " from " << begin;
          EXPECT_EQ(xp::count_nonzero(wide).item<std::int64_t>(),
                    xp::count_nonzero(out).item<std::int64_t>());
          detail::pointwise_into(pointwise::sigmoid_grad, Arguments{a, gy}, std::vector{a});
          EXPECT_EQ(bytes_of(a), want) << "in place";
          // A number, which is first and second; a row for all.
          a = columns_of(y, begin);
          Array half = xp::full(shape, 0.5, dtype, device), row = gy[Slice(0, 1)];
          EXPECT_EQ(bytes_of(of({a, 0.5})), bytes_of(of({y, half})));
          EXPECT_EQ(bytes_of(of({0.5, a})), bytes_of(of({half, y})));
          EXPECT_EQ(bytes_of(of({a, row})), bytes_of(of({y, xp::broadcast_to(row, shape).copy()})));
        }
      }
    }
  }
}

// A number for each channel of images, for each sample, for each place: rows that vectors divide
// and others, slices of channels.
TEST(Pointwise, AnElementForEachRow) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      for (Shape shape :
           {Shape{3, 5, 7}, Shape{64, 130, 200}, Shape{65, 131, 99}, Shape{2, 3, 1}}) {
        Array y = xp::random::uniform(0, 1, shape, float64, device).astype(dtype);
        Array part = xp::concatenate({y, y}, 1)[{Slice(), Slice(0, shape[1])}];  // not one axis
        auto of = [](Arguments in) { return detail::pointwise(pointwise::sigmoid_grad, in)[0]; };
        for (Shape few :
             {Shape{1, shape[1], 1}, Shape{shape[0], 1, 1}, Shape{shape[0], shape[1], 1},
              Shape{1, shape[1], shape[2]}, Shape{1, 1, shape[2]}}) {
          Array gy = xp::random::normal(0, 1, few, float64, device).astype(dtype);
          Array all = xp::broadcast_to(gy, shape).copy();
          std::string want = bytes_of(of({y, all}));
          EXPECT_EQ(bytes_of(of({y, gy})), want) << shape.str() << " by " << few.str();
          EXPECT_EQ(bytes_of(of({part, gy})), want) << shape.str() << " by " << few.str();
          EXPECT_EQ(bytes_of(of({gy, y})), bytes_of(of({all, y})));
          Array row = y[Slice(0, 1)], rows = xp::broadcast_to(row, shape).copy();
          EXPECT_EQ(bytes_of(of({row, all})), bytes_of(of({rows, all})));
        }
      }
    }
  }
}

// A mean's gradient: one element for arrays that lie flat, at addresses of any alignment; lengths
// around a vector's, a block's and several vectors a thread.
TEST(Pointwise, OneElementForAll) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      for (std::int64_t n : {1, 2, 7, 8, 9, 1023, 1024, 1025, 4099, 1000003}) {
        if (testing::quick() && n > 5000) continue;
        Array all = xp::random::uniform(0, 1, {n + 1}, float64, device).astype(dtype);
        auto of = [](Arguments in) { return detail::pointwise(pointwise::sigmoid_grad, in)[0]; };
        for (std::int64_t begin : {0, 1}) {
          Array y = all[Slice(begin, begin + n)], other = all[Slice(1 - begin, 1 - begin + n)];
          Array one = all[Slice(n / 2, n / 2 + 1)], many = xp::broadcast_to(one, {n}).copy();
          EXPECT_EQ(bytes_of(of({y, one})), bytes_of(of({y, many}))) << n << dtype_name(dtype);
          EXPECT_EQ(bytes_of(of({one, y})), bytes_of(of({many, y}))) << n << dtype_name(dtype);
          auto loss = [&](const Array& gy) {
            return detail::pointwise(pointwise::squared_error_grad, Arguments{y, other, gy});
          };
          EXPECT_EQ(bytes_of(loss(one)[0]), bytes_of(loss(many)[0])) << n << dtype_name(dtype);
          EXPECT_EQ(bytes_of(loss(one)[1]), bytes_of(loss(many)[1])) << n << dtype_name(dtype);
        }
      }
    }
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

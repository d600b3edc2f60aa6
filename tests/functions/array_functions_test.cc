// What functions that move and choose values refuse, and Variable's forms of them.
#include "rensa/functions/array_functions.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/array/sorting.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

template <class Error> void expect_refused(const std::vector<std::function<void()>>& calls) {
  for (std::size_t k = 0; k < calls.size(); ++k) EXPECT_THROW(calls[k](), Error) << "call " << k;
}

TEST(ArrayFunctions, ShapesThatDoNotFitAreErrors) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({3, 4}, float32, device)), v(xp::ones({4}, float32, device));
    Array rows = xp::array({0, 1}, device);
    expect_refused<ShapeError>({
        [&] { F::squeeze(x, 0); },
        [&] {
          F::repeat(x, {1, 2}, 1);
        },
        [&] { F::gather(x, 1, rows); },
        [&] {
          F::gather(x, 1, xp::zeros({4, 1}, int64, device));
        },
        [&] {
          F::index_select(x, 0, xp::zeros({1, 1}, int64, device));
        },
        [&] { F::select_item(x, constant(rows)); },
        [&] { F::permutate(x, rows); },
        [&] {
          F::stack({x, v});
        },
        [&] {
          F::concat({x, v});
        },
        [&] {
          F::broadcast({x, Variable(xp::ones({3}, float32, device))});
        },
        [&] { F::split_axis(x, 3, 1); },
        [&] {
          F::pad_sequence({x, v});
        },
        [&] { F::pad_sequence({x}, 2); },
        [&] {
          F::transpose_sequence({v, Variable(xp::ones({5}, float32, device))});
        },
        [&] { F::average(x, 1, Variable(xp::ones({3}, float32, device))); },
        [&] { F::average(x, {}, v); },
        [&] { F::scale(x, v, 0); },
        [&] { F::bias(x, x, 1); },
        [&] { F::batch_l2_norm_squared(F::sum(x)); },
        [&] {
          F::resize_images(x, {2, 2});
        },
        [&] {
          F::depth2space(xp::ones({1, 6, 2, 2}, float32, device), 2);
        },
        [&] {
          F::space2depth(xp::ones({1, 1, 3, 2}, float32, device), 2);
        },
        [&] {
          F::im2col(xp::ones({1, 1, 3, 3}, float32, device), 4);
        },
        [&] {
          F::im2col(xp::ones({1, 1, 3, 3}, float32, device), {3, 3, 3});
        },
        [&] {
          F::spatial_transformer_grid(x, {2, 2});
        },
        [&] {
          F::spatial_transformer_sampler(xp::ones({1, 1, 3, 3}, float32, device),
                                         xp::ones({1, 3, 2, 2}, float32, device));
        },
    });
    expect_refused<ValueError>({
        [&] { F::concat({}); },
        [&] { F::stack({}); },
        [&] { F::add(Variables{}); },
        [&] { F::pad(x, 1, "somehow"); },
        [&] {
          F::pad(x, {{1, 1}, {1, 1}, {1, 1}}, "edge");
        },
        [&] { F::topk(x, 5); },
        [&] { F::topk(x, -1); },
        [&] {
          F::cumsum(x, {0, 1});
        },
        [&] {
          F::max(xp::ones({0, 2}, float32, device), 0);
        },
        [&] { F::clip(x, 2, 1); },
        [&] { F::clip(x, std::nullopt, std::nullopt); },
        [&] { F::polygamma(-1, x); },
        [&] {
          F::resize_images(xp::ones({1, 1, 2, 2}, float32, device), 2, {.mode = "cubic"});
        },
    });
    expect_refused<IndexError>({
        [&] { F::flip(x, 2); },
        [&] { F::fliplr(v); },
        [&] { F::moveaxis(x, 0, 2); },
        [&] { F::cumprod(x, 2); },
        [&] { F::max(x, 2); },
        [&] {
          x[xp::array({true, false}, device)];
        },
        [&] { F::separate(x, 2); },
    });
    expect_refused<DtypeError>({
        [&] { F::gather(x, 1, x.array()); },
        [&] { F::index_select(x, 0, v.array()); },
        [&] { F::one_hot(x, 3); },
    });
  }
}

TEST(ArrayFunctions, TopKIsTheFrontOfAnArgsort) {
  xp::random::seed(9);
  for (Shape shape : {Shape{1, 1}, Shape{3, 40}, Shape{100, 256}, Shape{9, 257}, Shape{20, 1024},
                      Shape{5, 2048}, Shape{3, 2049}}) {
    for (Dtype dtype : {float16, bfloat16, float32, float64}) {
      // Many equal ones, zeros of both signs, infinity and NaN.
      Array x = xp::round(xp::random::normal(0, 1, shape, float64, cpu()) * 8) / 8;
      x = xp::where(x > 1.5, std::numeric_limits<double>::infinity(), x);
      x = xp::where(x < -1.75, std::numeric_limits<double>::quiet_NaN(), x).astype(dtype);
      for (std::int64_t k : {0, 1, 8, 32, 33}) {
        if (k > shape[1]) continue;
        for (bool largest : {false, true}) {
          Array want = xp::argsort(x, {.descending = largest})[{Slice(), Slice(0, k)}];
          for (Device device : testing::test_devices()) {
            Array got = F::topk(Variable(x.to(device)), k, 1, largest).second;
            EXPECT_TRUE(xp::array_equal(to_cpu(got), want))
                << shape.str() << ' ' << dtype_name(dtype) << ' ' << k;
          }
        }
      }
    }
  }
}

TEST(ArrayFunctions, ALabelOutOfRangeIsAnError) {
  Variable x(xp::ones({3, 4}));
  EXPECT_THROW(F::select_item(x, constant(xp::array({0, 4, 1}))), IndexError);
  EXPECT_THROW(x[xp::array({3})], IndexError);
}

TEST(ArrayFunctions, AMaskOfTwoAxesStandsForBoth) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::arange(24, float32, device).reshape({2, 3, 4}));
    Array mask = xp::array({{true, false, true}, {false, false, true}}, device);
    Variable y = F::get_item(x, {mask, Slice(1, 3)});
    EXPECT_TRUE(xp::array_equal(y.array(), x.array()[{mask, Slice(1, 3)}]));
    F::sum(y * y).backward();
    Array want = xp::zeros({2, 3, 4}, float32, device);
    want[{mask, Slice(1, 3)}] = y.array() * 2;
    EXPECT_TRUE(xp::array_equal(x.grad(), want));
    // Behind an ellipsis it stands for the last axes.
    Variable z = F::get_item(x, {ellipsis, xp::array({true, false, false, true}, device)});
    EXPECT_EQ(z.shape(), (Shape{2, 3, 2}));
  }
}

TEST(ArrayFunctions, AnIndexThatWasWrittenToIsAnErrorOfBackward) {
  Variable x(xp::ones({3}));
  Array rows = xp::array({0, 1});
  Variable y = F::sum(x[rows]);
  rows.fill(2);
  EXPECT_THROW(y.backward(), ValueError);
}

TEST(ArrayFunctions, EqualIndicesHaveTheSumOfTheirGradients) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({3}, float32, device));
    F::sum(x[xp::array({0, 2, 0, 0}, device)]).backward();
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 0, 1}));
  }
}

TEST(ArrayFunctions, PartsThatNothingUsesHaveZeros) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({4, 2}, float32, device));
    F::sum(F::split_axis(x, 2, 0)[1]).backward();
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1}));
    Variable a(xp::ones({3, 1}, float32, device)), b(xp::ones({1, 1}, float32, device));
    F::sum(F::transpose_sequence({a, b})[1]).backward();
    EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{0, 1, 0}));
  }
}

TEST(ArrayFunctions, OnlyALeafIsWrittenInPlace) {
  Variable x(xp::ones({2, 2})), y = x * 2;
  x.fill(3).assign(xp::array({1.f, 2.f}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_THROW(y.fill(0), ValueError);
  EXPECT_THROW(y.assign(x.array()), ValueError);
  y.unchain();
  y.fill(0);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace rensa

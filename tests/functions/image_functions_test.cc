// Images resized and looked at between their elements: layouts, equal bits and gradients. Their
// values are held to recorded ones by cases/array.cc.
#include "rensa/functions/image_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/function_node.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Array channels_last(const Array& x) {
  return x.transpose({0, 2, 3, 1}).ascontiguous().transpose({0, 3, 1, 2});
}
Array numbers(const Shape& shape, Dtype dtype, double most = 1) {
  return xp::random::uniform(-most, most, shape, float32, cpu()).astype(dtype);
}
double product(const Array& a, const Array& b) {
  return (a.astype(float64) * b.astype(float64)).sum().item<double>();
}

struct Resizing {
  const char* mode;
  bool align_corners;
  Variable operator()(const Variable& x, const Shape& out) const {
    return F::resize_images(x, out, {.mode = mode, .align_corners = align_corners});
  }
};
const Resizing kResizings[] = {{"bilinear", true}, {"bilinear", false}, {"nearest", true}};
const Shape kSizes[] = {{7, 5}, {14, 10}, {3, 16}, {1, 1}, {40, 2}};

/// y, gx, and ggy in the direction of x, which is y again: the function is linear.
Arrays resized(const Resizing& f, const Array& given, const Array& gradient, const Shape& out) {
  Variable x = given, y = f(x, out), gy = gradient;
  Variable gx = grad({y}, {x}, {gy}, true)[0];
  return {y.array(), gx.array(), grad({gx}, {gy}, {constant(given)})[0].array()};
}

TEST(ResizeImages, HasEqualBitsInAllLayoutsOnAllDevices) {
  xp::random::seed(3);
  for (Dtype dtype : {float32, float64, float16, bfloat16}) {
    for (std::int64_t channels : {1, 3, 9, 16}) {  // vectors of channels and single ones
      for (const Resizing& f : kResizings) {
        for (const Shape& out : kSizes) {
          Array x = numbers({2, channels, 7, 5}, dtype);
          Array gy = numbers({2, channels, out[0], out[1]}, dtype);
          Arrays want = resized(f, x, gy, out);
          EXPECT_TRUE(xp::array_equal(want[2], want[0]));
          if (dtype == float32 || dtype == float64) {  // the gradient is the transposed map
            EXPECT_NEAR(product(want[0], gy), product(x, want[1]), 1e-3);
          }
          for (Device device : testing::test_devices()) {
            for (bool last : {false, true}) {
              SCOPED_TRACE(want[0].view().describe() + (last ? " channels last" : ""));
              Arrays got =
                  last ? resized(f, channels_last(x.to(device)), channels_last(gy.to(device)), out)
                       : resized(f, x.to(device), gy.to(device), out);
              for (std::size_t k = 0; k < want.size(); ++k) {
                EXPECT_EQ(got[k].dtype(), dtype);
                EXPECT_TRUE(xp::array_equal(got[k].to_cpu(), want[k])) << k;
              }
              if (last && channels > 1) {
                EXPECT_EQ(got[0].strides(), channels_last(got[0]).strides());
              }
            }
          }
        }
      }
    }
  }
}

TEST(ResizeImages, AnInfiniteGradientStaysWithItsElements) {
  for (Device device : testing::test_devices()) {
    for (const Resizing& f : kResizings) {
      Variable x = xp::ones({1, 1, 8, 8}, float32, device), y = f(x, 16);
      Array gy = xp::zeros({1, 1, 16, 16}, float32, device);
      gy[{0, 0, 3, 3}] = std::numeric_limits<float>::infinity();
      Array gx = grad({y}, {x}, {constant(gy)})[0].array();
      EXPECT_FALSE(xp::isnan(gx).any().item<bool>());
      std::int64_t finite = xp::isfinite(gx).sum().item<std::int64_t>();
      EXPECT_GE(finite, 60);
      EXPECT_LE(finite, 63);
    }
  }
}

TEST(ResizeImages, OfOtherDtypesAndOfNone) {
  for (Device device : testing::test_devices()) {
    Array x = xp::arange(4, int32, device).reshape({1, 1, 2, 2});
    Variable y = F::resize_images(x, {2, 4}, {.mode = "nearest"});
    EXPECT_EQ(y.array().to_vector<int>(), (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3}));
    Variable none = xp::ones({0, 3, 2, 2}, float32, device);
    EXPECT_EQ(F::resize_images(none, 5).shape(), (Shape{0, 3, 5, 5}));
  }
}

// --- the spatial transformer's sampler ---

/// Places inside, at elements, at the border, past it, and many at one.
Array places(Dtype dtype) {
  Array grid = numbers({2, 2, 6, 5}, dtype, 1.3);
  float edges[] = {-1, 0, 1, -2, 2, -50, 50, 0.5};
  for (std::int64_t k = 0; k < 8; ++k) grid[{0, k % 2, 0, k / 2}] = edges[k];
  grid[{1, Slice(), Slice(0, 3)}] = 0.25;
  return grid;
}

/// y and the gradients of x and the grid.
Arrays sampled(const Array& image, const Array& grid, const Array& gy, bool twice = false) {
  Variable x = image, g = grid, y = F::spatial_transformer_sampler(x, g);
  Variables gradients = grad({y}, {x, g}, {constant(gy)}, twice);
  return {y.array(), gradients[0].array(), gradients[1].array()};
}

TEST(SpatialTransformerSampler, HasEqualBitsInAllLayoutsOnAllDevices) {
  xp::random::seed(4);
  for (Dtype dtype : {float32, float64, float16, bfloat16}) {
    for (std::int64_t channels : {1, 5, 41}) {
      Array x = numbers({2, channels, 4, 7}, dtype), gy = numbers({2, channels, 6, 5}, dtype);
      Array grid = places(dtype);
      Arrays want = sampled(x, grid, gy);
      Dtype wide = promote_types(dtype, float32);
      Arrays exact = sampled(x.astype(wide), grid.astype(wide), gy.astype(wide));
      for (std::size_t k = 0; k < want.size(); ++k) {  // rounded once
        EXPECT_TRUE(xp::array_equal(exact[k].astype(dtype), want[k])) << k;
      }
      for (Device device : testing::test_devices()) {
        for (bool last : {false, true}) {
          auto laid = [&](const Array& a) {
            return last ? channels_last(a.to(device)) : a.to(device);
          };
          Arrays got = sampled(laid(x), laid(grid), laid(gy));
          for (std::size_t k = 0; k < want.size(); ++k) {
            EXPECT_EQ(got[k].dtype(), dtype);
            EXPECT_TRUE(xp::array_equal(got[k].to_cpu(), want[k])) << k;
          }
        }
      }
    }
  }
}

// Gradients that are to be differentiated are made in another way.
TEST(SpatialTransformerSampler, GradientsAreThoseThatCanBeDifferentiated) {
  xp::random::seed(5);
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64}) {
      Array x = numbers({2, 9, 4, 7}, dtype).to(device), grid = places(dtype).to(device);
      Array gy = numbers({2, 9, 6, 5}, dtype).to(device);
      Arrays once = sampled(x, grid, gy), twice = sampled(x, grid, gy, true);
      for (std::size_t k = 0; k < once.size(); ++k) {
        EXPECT_TRUE(xp::allclose(once[k], twice[k], 1e-4, 1e-5)) << k;
      }
    }
  }
}

TEST(SpatialTransformerSampler, NothingLiesOutsideAndNaNNowhere) {
  for (Device device : testing::test_devices()) {
    Array x = xp::ones({1, 2, 3, 3}, float32, device);
    Array gy = xp::full({1, 2, 1, 2}, std::numeric_limits<float>::infinity(), float32, device);
    Arrays outside = sampled(x, xp::full({1, 2, 1, 2}, 9.f, float32, device), gy);
    EXPECT_EQ(outside[0].sum().item<float>(), 0);
    EXPECT_EQ(outside[1].sum().item<float>(), 0);
    Arrays nowhere = sampled(x, xp::full({1, 2, 1, 2}, NAN, float32, device), gy);
    EXPECT_TRUE(xp::isnan(nowhere[0]).all().item<bool>());
    Variable none = xp::ones({1, 0, 3, 3}, float32, device);
    EXPECT_EQ(F::spatial_transformer_sampler(none, xp::ones({1, 2, 4, 5}, float32, device)).shape(),
              (Shape{1, 0, 4, 5}));
  }
}

TEST(SpatialTransformerSampler, DtypesPromote) {
  Variable x = xp::ones({1, 1, 3, 3}, float32), grid = xp::zeros({1, 2, 1, 1}, float64);
  Variable y = F::spatial_transformer_sampler(x, grid);
  EXPECT_EQ(y.dtype(), float64);
  y.backward();
  EXPECT_EQ(x.grad().dtype(), float32);
}

}  // namespace
}  // namespace rensa

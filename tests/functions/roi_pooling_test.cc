// Pooling of regions of interest: equal bits, and what does not fit. Their values are held to
// recorded ones by cases/roi_pooling.cc.
#include "rensa/functions/roi_pooling.h"

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

using Roi = std::function<Variable(const Variable& x, const Array& rois, const Array& images)>;

const Roi kFunctions[] = {
    [](const Variable& x, const Array& r, const Array& i) {
      return F::roi_average_pooling_2d(x, r, i, 3, 0.5);
    },
    [](const Variable& x, const Array& r, const Array& i) {
      return F::roi_max_pooling_2d(x, r, i, 3, 0.5);
    },
    [](const Variable& x, const Array& r, const Array& i) {
      return F::roi_average_align_2d(x, r, i, 3, 0.5);
    },
    [](const Variable& x, const Array& r, const Array& i) {
      return F::roi_max_align_2d(x, r, i, 3, 0.5, {2, 0});
    },
};

// Many regions over the same elements: whichever device adds, it adds in the same order.
TEST(RoiPooling, HasEqualBitsOnAllDevices) {
  xp::random::seed(2);
  for (Dtype dtype : {float32, float64, float16, bfloat16}) {
    Array x = xp::random::uniform(-1, 1, {2, 5, 11, 13}, float32, cpu()).astype(dtype);
    Array low = xp::random::uniform(-4, 18, {40, 2}, float32, cpu());
    Array rois =
        xp::concatenate({low, low + xp::random::uniform(0, 20, {40, 2}, float32, cpu())}, 1);
    Array images = xp::random::randint(0, 2, {40}, int32, cpu());
    for (const Roi& f : kFunctions) {
      auto run = [&](Device device) {
        Variable given = x.to(device), y = f(given, rois.to(device), images.to(device));
        Variable gy = xp::ones_like(y.array());
        Variable gx = grad({y}, {given}, {gy}, true)[0];
        Variable ggy = grad({gx}, {gy}, {constant(given.array())})[0];
        return Arrays{y.array(), gx.array(), ggy.array()};
      };
      Arrays want = run(cpu());
      for (Device device : testing::test_devices()) {
        Arrays got = run(device);
        for (std::size_t k = 0; k < want.size(); ++k) {
          EXPECT_TRUE(xp::array_equal(got[k].to_cpu(), want[k])) << k;
        }
      }
      // The derivative is linear: in the direction of x it is y itself, where that is finite.
      Array finite = xp::isfinite(want[0]);
      EXPECT_TRUE(xp::allclose(xp::where(finite, want[0].astype(float32), 0),
                               xp::where(finite, want[2].astype(float32), 0), 1e-2, 1e-2));
    }
  }
}

TEST(RoiPooling, RegionsThatAreNoneEndSomewhere) {
  const float inf = std::numeric_limits<float>::infinity();
  for (Device device : testing::test_devices()) {
    Array x = xp::ones({1, 1, 4, 4}, float32, device);
    Array rois = xp::array({{0.f, 0.f, inf, inf},
                            {-inf, -inf, inf, inf},
                            {NAN, 0.f, 3.f, NAN},
                            {5.f, 5.f, 1.f, 1.f},
                            {1e30f, 1e30f, 2e30f, 2e30f}},
                           device);
    Array images = xp::zeros({5}, int32, device);
    for (const Roi& f : kFunctions) {
      Variable given = x, y = f(given, rois, images);
      EXPECT_EQ(y.shape(), (Shape{5, 1, 3, 3}));
      EXPECT_FALSE(xp::isnan(y.array()).any().item<bool>());
      F::sum(y).backward();
      EXPECT_TRUE(xp::isfinite(given.grad()).all().item<bool>());
    }
  }
}

TEST(RoiPooling, OfNoRegionsOrElements) {
  for (Device device : testing::test_devices()) {
    for (const Roi& f : kFunctions) {
      Variable x = xp::ones({2, 3, 4, 4}, float32, device);
      Variable y = f(x, xp::ones({0, 4}, float32, device), xp::ones({0}, int32, device));
      EXPECT_EQ(y.shape(), (Shape{0, 3, 3, 3}));
      F::sum(y).backward();
      EXPECT_EQ(x.grad().sum().item<float>(), 0);
      y = f(xp::ones({2, 3, 0, 4}, float32, device), xp::ones({1, 4}, float32, device),
            xp::ones({1}, int32, device));
      EXPECT_EQ(y.shape(), (Shape{1, 3, 3, 3}));
    }
  }
}

TEST(RoiPooling, WhatDoesNotFitIsTold) {
  for (Device device : testing::test_devices()) {
    Variable x = xp::ones({2, 3, 4, 4}, float32, device);
    Variable rois = xp::ones({2, 4}, float32, device), images = xp::zeros({2}, int32, device);
    auto call = [&](const Variable& a, const Variable& r, const Variable& i) {
      return F::roi_max_align_2d(a, r, i, 2, 1);
    };
    EXPECT_THROW(call(xp::ones({3, 4, 4}, float32, device), rois, images), ShapeError);
    EXPECT_THROW(call(x, xp::ones({2, 5}, float32, device), images), ShapeError);
    EXPECT_THROW(call(x, rois, xp::zeros({3}, int32, device)), ShapeError);
    EXPECT_THROW(call(x, rois, xp::zeros({2}, float32, device)), DtypeError);
    EXPECT_THROW(call(xp::ones({2, 3, 4, 4}, int32, device), rois, images), DtypeError);
    EXPECT_THROW(F::roi_pooling_2d(x, rois, 2, 2, 1), ShapeError);
    EXPECT_THROW(F::roi_max_pooling_2d(x, rois, images, 0, 1), ValueError);
    EXPECT_THROW(F::roi_max_pooling_2d(x, rois, images, {1, 2, 3}, 1), ValueError);
    EXPECT_THROW(F::roi_max_pooling_2d(x, rois, images, {}, 1), ValueError);
    EXPECT_THROW(F::roi_max_pooling_2d(x, rois, images, 2, 0), ValueError);
    EXPECT_THROW(F::roi_max_pooling_2d(x, rois, images, 2, NAN), ValueError);
    EXPECT_THROW(F::roi_average_align_2d(x, rois, images, 2, 1, -1), ValueError);
    for (int bad : {-1, 2}) {
      std::string text = testing::thrown<IndexError>([&] {
        (void)call(x, rois, xp::array({0, bad}, device)).array().to_vector<float>();
      });
      EXPECT_NE(text.find("roi_max_align_2d"), std::string::npos) << text;
      EXPECT_NE(text.find(std::to_string(bad)), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace rensa

// Modules of GoogLeNet: what recorded answers do not show.
#include "rensa/links/inception.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/links/mlp_convolution.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Inception, HasTheShapeOfItsParts) {
  for (Device device : testing::test_devices()) {
    L::Inception link(none, 2, 1, 3, 1, 4, 5);
    link.to(device);
    Variable x(xp::ones({2, 3, 6, 5}, float32, device));
    EXPECT_EQ(link(x).shape(), Shape({2, 2 + 3 + 4 + 5, 6, 5}));
    EXPECT_EQ(link.copy()(x).shape(), Shape({2, 14, 6, 5}));
    L::InceptionBN half(3, 0, 2, 4, 2, 5, L::PoolType::max, {}, {.stride = 2});
    half.to(device);
    EXPECT_EQ(half(x).shape(), Shape({2, 4 + 5 + 3, 3, 3}));
  }
}

TEST(Inception, WhatThereIsNotHasNoName) {
  auto children = [](const Link& link) {
    std::set<std::string> names;
    for (const auto& named : link.namedparams()) names.insert(named.path.substr(1, 5));
    return names;
  };
  L::InceptionBN all(3, 2, 2, 4, 2, 5, L::PoolType::avg, 2);
  L::InceptionBN few(3, 0, 2, 4, 2, 5, L::PoolType::avg);
  EXPECT_TRUE(children(all).count("conv1"));
  EXPECT_TRUE(children(all).count("poolp"));
  EXPECT_FALSE(children(few).count("conv1"));
  EXPECT_FALSE(children(few).count("poolp"));
}

TEST(Inception, ErrorsNameWhatDoesNotFit) {
  using L::PoolType;
  auto text = testing::thrown<ValueError>(
      [] { L::InceptionBN(3, 2, 2, 4, 2, 5, PoolType::max, 2, {.stride = 2}); });
  EXPECT_NE(text.find("out1 of 2"), std::string::npos) << text;
  EXPECT_THROW(L::InceptionBN(3, 2, 2, 4, 2, 5, PoolType::max), ValueError);
  EXPECT_THROW(L::MLPConvolution2D(3, {}, 3), ValueError);
}

}  // namespace
}  // namespace rensa

// Functions that few networks use, and their links: what cases/rare.cc does not say.
#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/sparse_matmul.h"
#include "rensa/links/links.h"
#include "tests/optional_parts.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<float>;

TEST(AsStrided, StaysWithinItsArray) {
  Variable x = xp::ones({3, 4});
  EXPECT_NO_THROW((void)F::as_strided(x, {3}, {-4}, 11));
  EXPECT_NO_THROW((void)F::as_strided(x, {0, 100}, {7, 7}));
  EXPECT_THROW((void)F::as_strided(x, {3}, {-4}, 7), ValueError);
  EXPECT_THROW((void)F::as_strided(x, {12}, {1}, 1), ValueError);
  EXPECT_THROW((void)F::as_strided(x, {3}, {std::int64_t{1} << 62}), ValueError);
  EXPECT_THROW((void)F::as_strided(x, {3}, {1, 1}), ShapeError);
  EXPECT_THROW((void)F::as_strided(x, {-1}, {1}), ValueError);
}

TEST(Shift, WhatDoesNotFitIsTold) {
  EXPECT_THROW((void)F::shift(xp::ones({1, 8, 3, 3})), ShapeError);
  EXPECT_THROW((void)F::shift(xp::ones({1, 9, 3})), ShapeError);
  EXPECT_THROW((void)F::shift(xp::ones({1, 9, 3, 3}), 2), ValueError);
  EXPECT_THROW((void)F::shift(xp::ones({1, 9, 3, 3}), 3, {.dilate = 0}), ValueError);
}

TEST(DeformableConvolution, WithoutOffsetsIsAConvolution) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(3);
    auto draw = [&](const Shape& shape) {
      return Variable(xp::random::uniform(-1, 1, shape, float32, device));
    };
    Variable x = draw({2, 3, 6, 5}), W = draw({4, 3, 3, 2}), b = draw({4});
    Variable none = xp::zeros({2, 12, 3, 6}, float32, device);
    Variable y = F::deformable_convolution_2d_sampler(x, none, W, b, {.stride = {2, 1}, .pad = 1});
    Variable want = F::convolution_2d(x, W, b, {.stride = {2, 1}, .pad = 1});
    EXPECT_TRUE(xp::allclose(y.array(), want.array(), 1e-4, 1e-5));
  }
  Variable x = xp::ones({2, 3, 6, 5}), W = xp::ones({4, 3, 3, 2});
  auto call = [&](const Shape& offset, const F::DeformableConvolutionOptions& options = {}) {
    (void)F::deformable_convolution_2d_sampler(x, xp::ones(offset), W, {}, options);
  };
  EXPECT_NO_THROW(call({2, 12, 4, 4}));
  EXPECT_THROW(call({2, 12, 4, 3}), ShapeError);
  EXPECT_THROW(call({2, 6, 4, 4}), ShapeError);
  EXPECT_THROW(call({2, 12, 4, 4}, {.stride = 0}), ValueError);
  EXPECT_THROW(call({2, 12, 4, 4}, {.pad = -1}), ValueError);
}

TEST(DeformableConvolution, BeyondOneRowThereIsNothing) {
  for (Device device : testing::test_devices()) {
    Variable x = (xp::arange(5, float32, device) + 1).reshape({1, 1, 1, 5});
    Variable W = xp::ones({1, 1, 1, 1}, float32, device);
    for (float below : {0.f, 0.5f, 7.f, -7.f}) {
      Array offset = xp::zeros({1, 2, 1, 5}, float32, device);
      offset[{Slice(), 1}].fill(below);
      Variable y = F::deformable_convolution_2d_sampler(x, offset, W);
      Array want = x.array() * std::max(0.f, 1 - std::abs(below));
      EXPECT_TRUE(xp::allclose(y.array(), want)) << below;
    }
  }
}

// A place at the right end of a wide picture, in a type that has no number near it.
TEST(DeformableConvolution, OfHalfTypesLooksWhereFloat32Looks) {
  for (Device device : testing::test_devices()) {
    constexpr std::int64_t kWidth = 1500;
    Variable x = (xp::arange(kWidth, float32, device) % 7).reshape({1, 1, 1, kWidth});
    Variable W = xp::ones({1, 1, 1, 1}, float32, device);
    Variable offset = xp::zeros({1, 2, 1, kWidth}, float32, device);
    Variable y = F::deformable_convolution_2d_sampler(F::cast(x, float16), F::cast(offset, float16),
                                                      F::cast(W, float16));
    EXPECT_TRUE(xp::allclose(y.array().astype(float32), x.array(), 1e-2, 1e-2));
  }
}

TEST(DeformableConvolution2D, LooksWhereItsConvolutionSays) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(4);
    L::DeformableConvolution2D link(none, 4, 3, {.pad = 1, .deform_initialW = 0.5});
    link.to(device);
    Variable x = xp::random::uniform(-1, 1, {2, 3, 5, 6}, float32, device);
    Variable y = link(x);
    EXPECT_EQ(y.shape(), (Shape{2, 4, 5, 6}));
    EXPECT_EQ(link.namedparams()[0].path, "/deform_conv/W");
    EXPECT_EQ(link.namedparams()[3].path, "/offset_conv/b");
    F::sum(F::square(y)).backward();
    for (const ParameterRef& p : link.params()) {
      EXPECT_GT(xp::absolute(p.grad()).sum().item<float>(), 0);
    }
    Variable offset = link.offset_conv(x);
    Variable want = F::deformable_convolution_2d_sampler(x, offset, link.deform_conv.W,
                                                         link.deform_conv.b, {.pad = 1});
    EXPECT_TRUE(xp::array_equal(y.array(), want.array()));
  }
  EXPECT_THROW(L::DeformableConvolution2D(3, 4, {1, 2, 3}), ValueError);
}

TEST(BlackOut, DrawsWordsByTheirCounts) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(5);
    L::BlackOut loss(4, {3, 0, 1}, 200);
    loss.to(device);
    loss.W.array().fill(0);
    Variable x = xp::ones({50, 4}, float32, device);
    Variable t = constant(xp::full({50}, 2, int32, device));
    // All scores are 0: of 201 words each has the probability 1 / 201.
    EXPECT_NEAR(loss(x, t).item<float>(), std::log(201) - 200 * std::log(200 / 201.), 1e-3);
    loss.cleargrads();
    loss(x, t).backward();
    Values g = loss.W.grad()[{Slice(), 0}].to_vector<float>();
    EXPECT_GT(g[0], 0);
    EXPECT_EQ(g[1], 0);  // never drawn
    EXPECT_THROW(loss(x, constant(xp::full({50}, 3, int32, device))).item<float>(), IndexError);
    EXPECT_THROW(loss(x, constant(xp::full({50}, -1, int32, device))).item<float>(), IndexError);
  }
  EXPECT_THROW(L::BlackOut(4, {1, -1}, 2), ValueError);
  EXPECT_THROW(L::BlackOut(4, {1, 1}, -1), ValueError);
  Variable x = xp::ones({2, 3}), W = xp::ones({5, 3}), t = constant(xp::zeros({2}, int32));
  Variable samples = constant(xp::zeros({2, 4}, int32));
  EXPECT_THROW(F::black_out(x, t, W, samples, "sum"), ValueError);
  EXPECT_THROW(F::black_out(x, t, W, t), ShapeError);
}

TEST(DiscriminativeLoss, OfAnyNumberOfInstances) {
  for (Device device : testing::test_devices()) {
    for (int norm : {1, 2}) {
      // Two instances, each of equal pixels, far from each other; a third one is not there.
      Array labels = xp::array({{{1, 1, 2, 0}}}, device).astype(int32);
      Variable x = xp::zeros({1, 3, 1, 4}, float32, device);
      x.array()[{0, 0, 0, 2}].assign(xp::full({}, 4, float32, device));
      auto loss = F::discriminative_margin_based_clustering_loss(x, constant(labels), 0.5, 1, 3,
                                                                 {.norm = norm, .gamma = 1});
      EXPECT_EQ(loss.variance.item<float>(), 0);
      // The means are 4 apart, and the third one, of nothing, at the first: (2 * delta_d)^2 of one
      // in three pairs.
      EXPECT_NEAR(loss.distance.item<float>(), 4 / 3., 1e-6);
      EXPECT_NEAR(loss.regularization.item<float>(), 4 / 3., 1e-6);
      (loss.variance + loss.distance + loss.regularization).backward();
      EXPECT_TRUE(xp::isfinite(x.grad()).all().item<bool>());
    }
  }
  Variable x = xp::ones({1, 3, 2, 2}), t = constant(xp::ones({1, 2, 2}, int32));
  auto call = [&](const Variable& a, const Variable& l, std::int64_t most, int norm) {
    (void)F::discriminative_margin_based_clustering_loss(a, l, 1, 1, most, {.norm = norm});
  };
  EXPECT_NO_THROW(call(x, t, 3, 1));
  EXPECT_THROW(call(x, t, 2, 1), ShapeError);
  EXPECT_THROW(call(x, t, 3, 3), ValueError);
  EXPECT_THROW(call(x, x, 3, 1), ShapeError);
  EXPECT_THROW(call(x, constant(xp::ones({1, 2, 2})), 3, 1), DtypeError);
}

// Samples and instances that the labels' dtype cannot hold are counted all the same.
TEST(NarrowLabels, AreThoseOfWideOnes) {
  for (Device device : testing::test_devices()) {
    Array x = xp::random::uniform(-1, 1, {3, 4}, float32, device);
    Array W = xp::random::uniform(-1, 1, {600, 4}, float32, device);
    Array samples = xp::array({{300, 511, 7}, {44, 599, 256}, {1, 2, 300}}, device);
    Array t = xp::array({5, 200, 17}, device);
    auto loss = [&](Dtype dtype) {
      return F::black_out(x, constant(t.astype(dtype)), W, constant(samples.astype(int64)))
          .item<float>();
    };
    EXPECT_EQ(loss(uint8), loss(int32));
    constexpr std::int64_t kMost = 130;
    Array embeddings = xp::random::uniform(-1, 1, {1, kMost, 2, 2}, float32, device);
    Array labels = xp::array({{{1, 127}, {-128, 2}}}, device);
    auto parts = [&](Dtype dtype) {
      auto loss = F::discriminative_margin_based_clustering_loss(
          embeddings, constant(labels.astype(dtype)), 0.5, 1.5, kMost);
      return std::vector{loss.variance.item<float>(), loss.distance.item<float>(),
                         loss.regularization.item<float>()};
    };
    EXPECT_EQ(parts(int8), parts(int32));
    EXPECT_GT(parts(int8)[2], 0);
  }
}

TEST(DecorrelatedBatchNormalization, LeavesNoCorrelation) {
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  for (Device device : testing::test_devices()) {
    xp::random::seed(6);
    Array x = xp::random::uniform(-1, 1, {32, 6, 2, 2}, float32, device);
    x[{Slice(), 1}].assign(x[{Slice(), 0}] * 0.7f + x[{Slice(), 1}] * 0.3f);
    L::DecorrelatedBatchNormalization link(6, {.groups = 2, .decay = 0, .eps = 1e-6});
    link.to(device);
    Array y = link(x).array();
    Array rows = y.transpose({1, 0, 2, 3}).reshape({2, 3, -1});
    Array covariance = xp::matmul(rows, rows.transpose({0, 2, 1})) / 128;
    EXPECT_TRUE(xp::allclose(covariance, xp::broadcast_to(xp::eye(3, float32, device), {2, 3, 3}),
                             1e-3, 1e-3));
    // The averages are this batch's: without the bias of 127 samples for 128.
    UsingConfig<bool> test(&Config::train, false);
    EXPECT_TRUE(xp::allclose(link(x).array(), y * (128 / 127.f), 1e-4, 1e-4));
  }
}

TEST(DecorrelatedBatchNormalization, EqualVariancesHaveAGradient) {
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  for (Device device : testing::test_devices()) {
    // The covariance is a multiple of the identity: all differences of eigenvalues are 0.
    Variable x = xp::array({{1.f, 0.f}, {-1.f, 0.f}, {0.f, 1.f}, {0.f, -1.f}}, device);
    Variable y = F::decorrelated_batch_normalization(x, {.groups = 1});
    Array weights = xp::array({{1.f, 2.f}, {-0.5f, 0.f}, {3.f, 1.f}, {0.f, 1.f}}, device);
    F::sum(y * constant(weights)).backward();
    Array found = x.grad();
    auto at = [&](std::int64_t i, std::int64_t j, float by) {
      Array moved = x.array().copy();
      moved[{i, j}] += by;
      Variable z = F::decorrelated_batch_normalization(moved.astype(float64), {.groups = 1});
      return xp::sum(z.array() * weights.astype(float64)).item<double>();
    };
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 2; ++j) {
        double want = (at(i, j, 1e-3f) - at(i, j, -1e-3f)) / 2e-3;
        EXPECT_NEAR((found[{i, j}].item<float>()), want, 2e-3) << i << ", " << j;
      }
    }
  }
}

TEST(DecorrelatedBatchNormalization, CountsWhereItFinetunes) {
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  xp::random::seed(7);
  L::DecorrelatedBatchNormalization link(4, {.groups = 2});
  Array a = xp::random::uniform(-1, 1, {8, 4}), b = xp::random::uniform(-1, 1, {8, 4});
  (void)link(a, true), (void)link(b, true);
  Array want = ((a.mean(0) + b.mean(0)) / 2).reshape({2, 2});
  EXPECT_TRUE(xp::allclose(link.avg_mean, want, 1e-5, 1e-6));
  EXPECT_EQ(link.N.value(), 2);
  EXPECT_THROW(L::DecorrelatedBatchNormalization(5, {.groups = 2}), ValueError);
  EXPECT_THROW(F::decorrelated_batch_normalization(a, {.groups = 3}), ShapeError);
  Variable x = a;
  Variable y = F::sum(F::square(F::decorrelated_batch_normalization(x, {.groups = 2})));
  EXPECT_THROW(grad({y}, {x}, {}, true), NotImplementedError);
}

TEST(SparseMatmul, OfWhatADenseOneHas) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(8);
    Array x = xp::random::uniform(-1, 1, {2, 4, 5}, float32, device);
    x = xp::where(x > 0.3f, x, xp::zeros({}, float32, device));
    Array dense = xp::random::uniform(-1, 1, {2, 5, 3}, float32, device);
    F::CooMatrix sparse = F::to_coo(x, 15, true);
    EXPECT_EQ(sparse.data.shape(), (Shape{2, 15}));
    EXPECT_TRUE(xp::array_equal(sparse.to_dense().array(), x));
    Variable y = F::sparse_matmul(sparse, dense);
    EXPECT_TRUE(xp::allclose(y.array(), xp::matmul(x, dense), 1e-5, 1e-6));
    F::sum(y).backward();
    EXPECT_EQ(sparse.data.grad().shape(), (Shape{2, 15}));
    F::CooMatrix one = F::to_coo(x[0]);
    EXPECT_EQ(one.data.ndim(), 1);
    EXPECT_TRUE(xp::array_equal(one.to_dense().array(), x[0]));
    // What is no element is no product of an infinity with 0.
    Array infinite = xp::full({2, 5, 3}, INFINITY, float32, device);
    sparse = F::to_coo(xp::zeros({2, 4, 5}, float32, device), 3, true);
    Variable none = F::sparse_matmul(sparse, infinite);
    F::sum(none).backward();
    EXPECT_EQ(xp::absolute(none.array()).sum().item<float>(), 0);
    EXPECT_EQ(xp::absolute(sparse.data.grad()).sum().item<float>(), 0);
  }
}

TEST(SparseMatmul, OfNoRowsOrColumns) {
  for (Device device : testing::test_devices()) {
    Array none = xp::full({3}, -1, int32, device), data = xp::ones({3}, float32, device);
    F::CooMatrix rows(data, none, none, 0, 4), columns(data, none, none, 4, 0);
    EXPECT_EQ(F::sparse_matmul(rows, xp::ones({4, 2}, float32, device)).shape(), (Shape{0, 2}));
    Variable y = F::sparse_matmul(columns, xp::ones({0, 2}, float32, device));
    EXPECT_EQ(y.shape(), (Shape{4, 2}));
    EXPECT_EQ(y.array().sum().item<float>(), 0);
  }
}

TEST(SparseMatmul, WhatDoesNotFitIsTold) {
  for (Device device : testing::test_devices()) {
    Array one = xp::ones({2}, float32, device), at = xp::array({0, 1}, device);
    auto coo = [&](const Array& row) { return F::CooMatrix(Variable(one), row, at, 3, 4); };
    EXPECT_THROW(coo(xp::array({0, 1, 2}, device)), ShapeError);
    EXPECT_THROW(coo(one), DtypeError);
    Variable dense = xp::ones({4, 2}, float32, device);
    EXPECT_EQ(F::sparse_matmul(coo(at), dense).shape(), (Shape{3, 2}));
    EXPECT_THROW(F::sparse_matmul(coo(at), dense, true), ShapeError);
    EXPECT_THROW(F::sparse_matmul(dense, coo(at)), ShapeError);
    EXPECT_THROW(F::sparse_matmul(coo(at), xp::ones({1, 4, 2}, float32, device)), ShapeError);
    EXPECT_THROW(F::sparse_matmul(coo(at), xp::ones({4, 2}, float64, device)), DtypeError);
    for (int bad : {3, -2}) {
      auto run = [&] {
        return F::sparse_matmul(coo(xp::array({0, bad}, device)), dense).array().to_vector<float>();
      };
      EXPECT_THROW(run(), IndexError) << bad;
    }
  }
}

}  // namespace
}  // namespace rensa

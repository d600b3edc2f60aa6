// Links that normalize: their statistics, eagerly, in files, in copies and in captured steps.
#include "rensa/links/normalization_links.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/io.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using V = std::vector<float>;

void expect_near(const Array& got, const V& want, double tolerance = 1e-5) {
  V values = got.to_vector<float>();
  ASSERT_EQ(values.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], tolerance) << i;
}

// Four samples of two channels; their means are 4 and 1, their unbiased variances 20 / 3 and 4 / 3.
Array batch(Device device) {
  return xp::array({{1.f, 0.f}, {3.f, 2.f}, {5.f, 0.f}, {7.f, 2.f}}).to(device);
}

TEST(BatchNormalization, MovesItsAveragesInTraining) {
  for (Device device : testing::test_devices()) {
    L::BatchNormalization bn(2, {.decay = 0.75});
    bn.to(device);
    Variable y = bn(batch(device));
    expect_near(y.array()[Slice(0, 1)], {-1.341639f, -0.99999f}, 1e-4);
    expect_near(bn.avg_mean, {1, 0.25f});
    expect_near(bn.avg_var, {0.75f + 0.25f * 20 / 3, 0.75f + 0.25f * 4 / 3});
    UsingConfig off(&Config::train, false);
    V before = bn.avg_mean.to_vector<float>();
    y = bn(batch(device));
    EXPECT_EQ(bn.avg_mean.to_vector<float>(), before);
    expect_near(y.array()[Slice(0, 1)], {0, -0.25f / std::sqrt(0.75f + 1.f / 3)}, 1e-4);
  }
}

TEST(BatchNormalization, MayWaitForItsSize) {
  for (Device device : testing::test_devices()) {
    L::BatchNormalization bn, places(none, {.axis = 0}), rows(none, {.axis = {0, 2}});
    bn.to(device), places.to(device), rows.to(device);
    Array x = xp::random::uniform(-1, 1, {3, 2, 4}, float32, device);
    EXPECT_EQ(bn(x).shape(), x.shape());
    EXPECT_EQ(bn.gamma.shape(), Shape{2});
    EXPECT_EQ(bn.avg_var.device(), device);
    places(x), rows(x);
    EXPECT_EQ(places.avg_mean.shape(), (Shape{2, 4}));
    EXPECT_EQ(rows.beta.shape(), Shape{2});
  }
  EXPECT_THROW(L::BatchNormalization()(xp::ones({3})), ShapeError);
  EXPECT_THROW(L::BatchNormalization(3)(xp::ones({2, 4})), ShapeError);
  EXPECT_THROW(L::BatchNormalization(-1), ValueError);
}

TEST(BatchNormalization, HasWhatItUses) {
  L::BatchNormalization bn(Shape{2, 3}, {.use_gamma = false, .use_beta = false});
  EXPECT_TRUE(bn.params().empty());
  Array x = xp::random::uniform(-1, 1, {5, 2, 3});
  expect_near(bn(x).array().mean(0), V(6, 0));
}

TEST(BatchNormalization, OfMixedDtypesKeepsFloat32) {
  testing::TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    UsingConfig mixed(&Config::dtype, mixed16);
    L::BatchNormalization bn(2), late, of(2, {.dtype = float16}), loaded;
    bn.to(device), late.to(device), of.to(device), loaded.to(device);
    Array x = batch(device).astype(float16);
    for (L::BatchNormalization* link : {&bn, &late}) {
      Variable y = (*link)(x);
      EXPECT_EQ(y.dtype(), float16);
      expect_near(y.array()[Slice(0, 1)], {-1.3416f, -1}, 2e-3);
      EXPECT_EQ(link->gamma.dtype(), float32);
      EXPECT_EQ(link->beta.dtype(), float32);
      EXPECT_EQ(link->avg_mean.dtype(), float32);
      expect_near(link->avg_mean, {0.4f, 0.1f});
      y.set_grad(xp::ones_like(y.array()));
      y.backward();
      EXPECT_EQ(link->beta.grad().to_vector<float>(), (V{4, 4}));
      UsingConfig testing(&Config::train, false);
      EXPECT_EQ((*link)(x).dtype(), float16);
    }
    EXPECT_EQ(of.gamma.dtype(), float16);
    EXPECT_EQ(of.avg_var.dtype(), float16);
    serializers::save_npz(folder / "bn.npz", bn);
    serializers::load_npz(folder / "bn.npz", loaded);
    EXPECT_EQ(loaded.gamma.dtype(), float32);
    EXPECT_EQ(L::LayerNormalization(2).gamma.dtype(), float32);
    EXPECT_EQ(L::RMSNorm(2).gamma.dtype(), float32);
    EXPECT_EQ(L::GroupNormalization(1, 2).beta.dtype(), float32);
  }
}

TEST(BatchNormalization, FinetuningAveragesAllBatches) {
  for (Device device : testing::test_devices()) {
    L::BatchNormalization bn(2);
    bn.to(device);
    for (int i = 0; i < 3; ++i) bn(batch(device) * static_cast<float>(i), true);
    EXPECT_EQ(bn.N.value(), 3);
    expect_near(bn.avg_mean, {4, 1});
    expect_near(bn.avg_var, {20.f / 3 * 5 / 3, 4.f / 3 * 5 / 3}, 1e-4);
    bn.start_finetuning();
    bn(batch(device), true);
    expect_near(bn.avg_mean, {4, 1});
  }
}

TEST(BatchNormalization, HasChainersNamesInFiles) {
  testing::TemporaryFolder folder;
  L::BatchNormalization bn(2), other(2), waiting;
  bn(batch(cpu()), true), bn(batch(cpu()) + 1.f, true);
  serializers::save_npz(folder / "bn.npz", bn);
  xp::NpzFile file = xp::load_npz(folder / "bn.npz");
  for (const char* key : {"gamma", "beta", "avg_mean", "avg_var", "N"}) {
    EXPECT_NO_THROW(file[key]) << key;
  }
  for (L::BatchNormalization* to : {&other, &waiting}) {
    serializers::load_npz(folder / "bn.npz", *to);
    EXPECT_EQ(to->avg_var.to_vector<float>(), bn.avg_var.to_vector<float>());
    EXPECT_EQ(to->N.value(), 2);
    UsingConfig off(&Config::train, false);
    EXPECT_EQ((*to)(batch(cpu())).array().to_vector<float>(),
              bn(batch(cpu())).array().to_vector<float>());
  }
}

TEST(BatchNormalization, CopiesHaveAveragesOfTheirOwn) {
  L::BatchNormalization bn(2), copy(bn), shared = bn.copy();
  bn(batch(cpu()));
  expect_near(copy.avg_mean, {0, 0});
  expect_near(shared.avg_mean, {0.4f, 0.1f});
}

TEST(BatchNormalization, IsReplayedBitForBit) {
  for (Device device : testing::test_devices()) {
    L::BatchNormalization bn(3), twin(bn);
    bn.to(device), twin.to(device);
    optimizers::SGD sgd(0.1), twin_sgd(0.1);
    sgd.setup(bn), twin_sgd.setup(twin);
    auto train = [](L::BatchNormalization& model, Optimizer& optimizer, const Variable& x) {
      Variable loss = F::sum(F::square(model(x)) * x);
      model.cleargrads();
      loss.backward();
      optimizer.update();
      return loss;
    };
    auto step =
        capture([&](const Variable& x) { return train(bn, sgd, x); }, {.replay_lists = true});
    for (int i = 0; i < 8; ++i) {
      Array x = xp::random::uniform(-1, 1, {4, 3, 5}, float32, device);
      V want = train(twin, twin_sgd, constant(x)).array().to_vector<float>();
      EXPECT_EQ(step(constant(x)).array().to_vector<float>(), want) << i;
      EXPECT_EQ(bn.avg_mean.to_vector<float>(), twin.avg_mean.to_vector<float>()) << i;
      EXPECT_EQ(bn.avg_var.to_vector<float>(), twin.avg_var.to_vector<float>()) << i;
      EXPECT_EQ(bn.gamma.array().to_vector<float>(), twin.gamma.array().to_vector<float>()) << i;
    }
    EXPECT_GT(step.stats().replays, 3) << step.stats().last_fallback;
  }
}

TEST(BatchRenormalization, IsBatchNormalizationUntilItMayDiffer) {
  for (Device device : testing::test_devices()) {
    L::BatchRenormalization plain(2), free(2, 100, 100);
    L::BatchNormalization bn(2);
    plain.to(device), free.to(device), bn.to(device);
    V want = bn(batch(device)).array().to_vector<float>();
    expect_near(plain(batch(device)).array(), want);
    EXPECT_EQ(plain.statistics.avg_mean.to_vector<float>(), bn.avg_mean.to_vector<float>());
    // By the averages alone, which were 0 and 1: x itself.
    expect_near(free(batch(device)).array(), batch(device).to_vector<float>(), 1e-3);
    EXPECT_EQ(free.namedparams()[1].path, "/gamma");
    UsingConfig off(&Config::train, false);
    expect_near(free(batch(device)).array(), bn(batch(device)).array().to_vector<float>());
  }
  EXPECT_THROW(L::BatchRenormalization(2, 1, 0, {.axis = 0}), ValueError);
}

TEST(SampleNormalizations, MayWaitForTheirSizes) {
  for (Device device : testing::test_devices()) {
    L::LayerNormalization layer, last(4);
    L::RMSNorm rms;
    L::GroupNormalization group(2), sized(3, 6, {.eps = 0.1});
    layer.to(device), last.to(device), rms.to(device), group.to(device), sized.to(device);
    Array x = xp::random::uniform(-1, 1, {3, 6, 4}, float32, device);
    EXPECT_EQ(layer(x).shape(), x.shape());
    EXPECT_EQ(layer.gamma.shape(), (Shape{6, 4}));
    rms(x), group(x);
    EXPECT_EQ(rms.gamma.shape(), Shape{4});
    EXPECT_EQ(group.beta.shape(), Shape{6});
    EXPECT_EQ(last(x).array().to_vector<float>(),
              F::layer_normalization(x, last.gamma, last.beta, 1e-6).array().to_vector<float>());
    EXPECT_EQ(rms(x).array().to_vector<float>(),
              F::rms_norm(x, rms.gamma).array().to_vector<float>());
    EXPECT_EQ(
        sized(x).array().to_vector<float>(),
        F::group_normalization(x, 3, sized.gamma, sized.beta, 0.1).array().to_vector<float>());
    EXPECT_EQ(group.namedparams()[0].path, "/beta");
  }
  EXPECT_THROW(L::LayerNormalization()(xp::ones({3})), ShapeError);
  EXPECT_THROW(L::GroupNormalization(2)(xp::ones({2, 3})), ValueError);
}

}  // namespace
}  // namespace rensa

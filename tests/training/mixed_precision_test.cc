// Training in 16 bits: what float32 learns they learn, eagerly and in captured steps.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/autocast.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/stream.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<double>;

struct MLP : Chain<MLP> {
  L::Linear l1{64, 32}, l2{32, 32}, l3{32, 4};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const {
    return l3(F::relu(l2(F::relu(l1(F::reshape(x, {-1, 64}))))));
  }
};

struct ConvNet : Chain<ConvNet> {
  L::Convolution2D c1{1, 8, 3, {.pad = {1}}}, c2{8, 8, 3, {.pad = {1}}};
  L::BatchNormalization b1{8}, b2{8};
  L::Linear l{8 * 2 * 2, 4};
  void members(Visitor& v) override {
    v("c1", c1), v("c2", c2), v("b1", b1), v("b2", b2), v("l", l);
  }
  Variable operator()(const Variable& x) const {
    Variable h = F::max_pooling_2d(F::relu(b1(c1(x))), {2});
    h = F::max_pooling_2d(F::relu(b2(c2(h))), {2});
    return l(F::reshape(h, {-1, 8 * 2 * 2}));
  }
};

/// How a net is trained.
struct Mode {
  const char* name;
  DefaultDtype dtype = float32;
  std::optional<Dtype> autocast = {};
  std::optional<LossScalingOptions> scaling = {};
  double tolerance = 0.05;  // of the mean loss of the last steps
};

const std::vector<Mode> kModes = {
    {"mixed_bf16", mixed_bf16, {}, {}, 0.05},
    {"mixed16, scaled by 1024", mixed16, {}, LossScalingOptions{.scale = 1024}, 0.02},
    {"mixed16, scaled dynamically", mixed16, {}, LossScalingOptions{.interval = 10}, 0.02},
    {"autocast to bfloat16", float32, bfloat16, {}, 0.05},
    {"autocast to float16, scaled dynamically", float32, float16,
     LossScalingOptions{.interval = 10}, 0.02},
};

/// Images of 8 x 8 of four kinds: which quarter is the brightest.
std::pair<Array, Array> batch(std::uint64_t seed, Device device) {
  xp::random::seed(seed);
  Array t = xp::random::randint(0, 4, {32}, int32);
  Array x = xp::random::uniform(-1, 1, {32, 1, 8, 8});
  for (std::int64_t i = 0; i < 32; ++i) {
    std::int64_t k = t[i].item<int>(), row = k / 2 * 4, column = k % 2 * 4;
    x[{i, 0, Slice(row, row + 4), Slice(column, column + 4)}] += 0.75f;
  }
  return {x.to(device), t.to(device)};
}

/// The loss of each step.
template <class Net> Values train(const Mode& mode, Device device, bool captured) {
  UsingConfig in(&Config::dtype, mode.dtype);
  xp::random::seed(7);
  Net net;
  net.to(device);
  optimizers::MomentumSGD optimizer(0.05);
  optimizer.setup(net).use_fp32_update();
  if (mode.scaling) optimizer.loss_scaling(*mode.scaling);
  auto step = [&](const Variables& given) {
    std::optional<Autocast> on;
    if (mode.autocast) on.emplace(*mode.autocast);
    Variable loss = F::softmax_cross_entropy(net(F::cast(given[0], get_dtype())), given[1]);
    on.reset();
    net.cleargrads();
    optimizer.backward(loss);
    optimizer.update();
    return Variables{F::cast(loss, float32)};
  };
  CaptureCache cache({.replay_lists = true});
  std::vector<std::pair<Array, Array>> batches;
  for (std::uint64_t i = 0; i < 8; ++i) batches.push_back(batch(i, device));
  std::vector<Variable> losses;
  std::int64_t waits = cuda::sync_count();
  for (int i = 0; i < 48; ++i) {
    const auto& [x, t] = batches[static_cast<std::size_t>(i % 8)];
    Variables given{constant(x), constant(t)};
    losses.push_back((captured ? cache.call(step, given) : step(given))[0]);
  }
  EXPECT_EQ(cuda::sync_count(), waits);
  if (captured) {
    EXPECT_GT(cache.stats().replays, 40) << cache.stats().last_fallback;
  }
  Values values;
  for (const Variable& loss : losses) values.push_back(loss.item<double>());
  return values;
}

double last(const Values& losses) {
  double sum = 0;
  for (std::size_t i = losses.size() - 8; i < losses.size(); ++i) sum += losses[i];
  return sum / 8;
}

template <class Net> void expect_alike() {
  for (Device device : testing::test_devices()) {
    Values want = train<Net>({"float32"}, device, false);
    EXPECT_LT(last(want), 0.25 * want[0]);
    for (const Mode& mode : kModes) {
      SCOPED_TRACE(std::string(mode.name) + " on " + device.str());
      Values losses = train<Net>(mode, device, false);
      EXPECT_NEAR(last(losses), last(want), mode.tolerance);
      EXPECT_EQ(train<Net>(mode, device, true), losses);
    }
  }
}

TEST(MixedPrecision, AScopeAroundTheLossIsAllThatAModelNeeds) {
  for (Device device : testing::test_devices()) {
    MLP net;
    net.to(device);
    auto optimizer = optimizers::Adam();
    optimizer.setup(net);
    auto [x, t] = batch(0, device);
    auto loss_of = [&](const Variable& x, const Variable& t) {
      Autocast on(bfloat16);  // products in 16 bits; parameters and the loss stay float32
      return F::softmax_cross_entropy(net(x), t);
    };
    float first = optimizer.update(loss_of, x, t).item<float>();
    for (int i = 0; i < 50; ++i) (void)optimizer.update(loss_of, x, t);
    EXPECT_LT(loss_of(x, t).item<float>(), first / 2);
    EXPECT_EQ(net(x).dtype(), float32);
  }
}

TEST(MixedPrecision, AnMlpLearnsAsInFloat32) { expect_alike<MLP>(); }
TEST(MixedPrecision, AConvolutionalNetLearnsAsInFloat32) { expect_alike<ConvNet>(); }

}  // namespace
}  // namespace rensa

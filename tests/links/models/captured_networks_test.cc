// Networks with dropout and normalizations train captured as they do eagerly, bit for bit.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/backward.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/links/models/drawn.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// All that a model keeps, by its names.
class Kept final : public PathVisitor {
 public:
  explicit Kept(const Link& link) { Members(link).show(*this); }
  void parameter(std::string_view name, Parameter& p) override { add(name, p.array()); }
  void persistent(std::string_view name, Persistent& p) override { add(name, p); }
  std::map<std::string, std::vector<float>> all;

 private:
  void add(std::string_view name, const Array& array) {
    all.emplace(path(name), array.to_vector<float>());
  }
};

struct Run {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> kept;
};

/// 50 updates on one batch after another.
template <class Net, class MakeBatch>
Run train(const Net& start, Device device, bool captured, Optimizer optimizer, MakeBatch batch) {
  Net net(start);
  net.to(device);
  optimizer.setup(net);
  xp::random::seed(5);
  auto step = [&](const Variables& in) {
    Variable y = net(in[0]);
    Variable loss = F::softmax_cross_entropy(F::reshape(y, {-1, y.shape(-1)}), in[1]);
    net.cleargrads();
    loss.backward();
    optimizer.update();
    return Variables{loss};
  };
  CaptureCache cache({.replay_lists = true});
  Run run;
  for (int i = 0; i < 50; ++i) {
    Variables in = batch(i);
    for (Variable& x : in) x = constant(x.array().to(device));
    Variable loss = (captured ? cache.call(step, in) : step(in))[0];
    run.losses.push_back(loss.array().item<float>());
  }
  if (captured) {
    EXPECT_GT(cache.stats().replays, 40) << cache.stats().last_fallback;
  }
  run.kept = Kept(net).all;
  return run;
}

template <class Net, class MakeOptimizer, class MakeBatch>
void expect_the_same(const Net& start, MakeOptimizer optimizer, MakeBatch batch) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    Run eager = train(start, device, false, optimizer(), batch);
    Run captured = train(start, device, true, optimizer(), batch);
    EXPECT_EQ(captured.losses, eager.losses);
    EXPECT_EQ(captured.kept, eager.kept);
    EXPECT_NE(eager.losses.front(), eager.losses.back());
    EXPECT_NE(eager.kept, Kept(start).all);
  }
}

Variables images(int i, std::int64_t size) {
  DeviceScope host(cpu());
  Array x = testing::drawn("images " + std::to_string(i), {4, 3, size, size});
  return {constant((x * 2.0 - 1.0).astype(float32)), constant((xp::arange(4) + i) % 10)};
}

TEST(CapturedNetworks, VggWithDropoutAndBatchNormalization) {
  L::VGGOptions options = L::VGGOptions::cifar();
  options.width = 2, options.hidden = {16};
  expect_the_same(
      L::VGG16Layers(options), [] { return optimizers::MomentumSGD(0.01); },
      [](int i) { return images(i, 32); });
}

TEST(CapturedNetworks, ResNet) {
  L::ResNetOptions options = L::ResNetOptions::torchvision();
  options.width = 2, options.classes = 10;
  expect_the_same(
      L::ResNetLayers({1, 1, 1, 1}, true, options), [] { return optimizers::MomentumSGD(0.01); },
      [](int i) { return images(i, 40); });
}

TEST(CapturedNetworks, Gpt2WithDropout) {
  L::GPT2 start({.vocab_size = 11, .n_positions = 7, .n_embd = 8, .n_layer = 2, .n_head = 2});
  expect_the_same(
      start, [] { return optimizers::AdamW({.alpha = 1e-3}); },
      [](int i) {
        DeviceScope host(cpu());
        Array text = ((xp::arange(21).astype(int32) * 5 + i) % 11).reshape({3, 7});
        return Variables{constant(text[{Slice(), Slice(0, 6)}].copy()),
                         constant(text[{Slice(), Slice(1, 7)}].copy().reshape({-1}))};
      });
}

}  // namespace
}  // namespace rensa

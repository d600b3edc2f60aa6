// A product that gives a gradient, and SGD's update with it, as one operation and one after the
// other: the same bits, whatever the numbers, wherever the arrays lie.
#include "rensa/functions/operations/update_parameters/product_and_update.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/device/launcher.h"
#include "tests/graph/rewritten.h"

namespace rensa {
namespace {

/// The gradient of a layer's weights, of `out` x `in`, by `samples` samples.
struct Layer {
  Array gy, x, w, gw;
  std::optional<operations::ProductAndUpdate> op;

  /// `skip` floats lie before the weights.
  Layer(std::int64_t out, std::int64_t in, std::int64_t samples, std::int64_t skip, Device device) {
    auto drawn = [&](const Shape& shape) {
      return xp::random::normal(0, 1, shape, float32, device);
    };
    gy = drawn({samples, out});
    x = drawn({samples, in});
    w = drawn({skip + out * in})[{Slice(skip, skip + out * in)}].reshape({out, in});
    gw = xp::zeros({out, in}, float32, device);
    operations::Matmul product;
    product.a = gy.transpose().operand();
    product.b = x.operand();
    product.c = gw.operand();
    operations::UpdateParameters update("SGD", UpdateRuleId::sgd);
    update.set_size = 1;
    for (double lr : {1000.0, 0.375}) update.hyperparameters.emplace_back().real = lr;
    operations::UpdateTarget target;
    target.parameter = w.operand();
    target.set = 1;
    op.emplace(product, update, target);
  }
  /// Holds the operation against its steps.
  void check() {
    Array before = w.copy();
    operations::Matmul product = op->product;
    launch(product);
    operations::UpdateParameters update = op->update;
    update.targets[0].gradient = gw.operand();
    launch(update);
    std::string of_w = testing::bytes_of(w), of_gw = testing::bytes_of(gw);
    EXPECT_TRUE(of_w != testing::bytes_of(before));
    w.assign(before);
    gw.fill(7);
    launch(*op);
    EXPECT_TRUE(testing::bytes_of(w) == of_w);
    EXPECT_TRUE(testing::bytes_of(gw) == of_gw);
  }
};

/// Calls test(device, whether large tiles multiply so there) in each precision.
template <class F> void in_each_precision(F&& test) {
  for (Device device : testing::test_devices()) {
    for (UseTf32 tf32 : {UseTf32(false), UseTf32(true), UseTf32::x3()}) {
      if (device.is_cpu() && tf32 != UseTf32(false)) continue;  // it has no other
      SCOPED_TRACE(device.str() + (tf32.is_x3() ? " tf32x3" : tf32 ? " tf32" : " float32"));
      UsingConfig<UseTf32> scope(&Config::tf32, tf32);
      test(device, testing::has_large_tiles(device, tf32));
    }
  }
}

TEST(ProductAndUpdate, HasTheBitsOfTheSteps) {
  struct Case {
    std::int64_t out, in, samples;
    bool large;  // is likely to go by large tiles
  };
  in_each_precision([](Device device, bool has_large) {
    for (Case c : {Case{1000, 784, 100, true},
                   {900, 564, 97, true},
                   {1000, 784, 160, true},
                   {1000, 784, 225, true},
                   {1000, 784, 1024, true},
                   {1024, 1000, 301, true},
                   {1000, 786, 100, false},
                   {10, 1000, 100, false},
                   {5, 7, 3, false}}) {
      for (std::int64_t skip : {0, 1, 4}) {
        SCOPED_TRACE((Shape{c.out, c.in, c.samples, skip}.str()));
        Layer layer(c.out, c.in, c.samples, skip, device);
        EXPECT_EQ(layer.op->product.takes_update(), c.large && has_large);
        layer.check();
      }
    }
  });
}

TEST(ProductAndUpdate, OfWhatIsNoNumber) {
  in_each_precision([](Device device, bool) {
    for (std::int64_t samples : {100, 300}) {
      SCOPED_TRACE(samples);
      Layer layer(1000, 784, samples, 0, device);
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      layer.x[{3, 5}].fill(std::numeric_limits<float>::quiet_NaN());
      layer.x[{7, 0}].fill(kInfinity);
      layer.gy[{11, 0}].fill(-kInfinity);
      layer.w[{20, 20}].fill(kInfinity);
      layer.x[{Slice(), 100}].fill(-0.0f);
      layer.check();
    }
  });
}

// What a replay's slot holds counts, not what was recorded.
TEST(ProductAndUpdate, TakesTheRateOfTheReplay) {
  in_each_precision([](Device device, bool) {
    if (!device.is_cuda()) return;
    Array rate = xp::full({1}, 0.125, float64, device);
    for (std::int64_t samples : {100, 300}) {
      Layer layer(1000, 784, samples, 0, device);
      Array before = layer.w.copy();
      layer.op->update.hyperparameters[0].device = rate.data();
      layer.check();
      // w - 0.125 gw, where the one that was recorded would give w - 0.375 gw.
      Array want = before - layer.gw * 0.125f;
      EXPECT_LT(xp::abs(layer.w - want).max().item<float>(), 1e-3f);
    }
  });
}

// Products whose ends or factor the update would have to see do not take it.
TEST(ProductAndUpdate, NotWithOtherEnds) {
  for (Device device : testing::test_devices()) {
    auto takes = [&](auto&& change) {
      Layer layer(1000, 784, 100, 0, device);
      change(layer.op->product, layer);
      return layer.op->product.takes_update();
    };
    using operations::Matmul;
    EXPECT_EQ(takes([](Matmul&, Layer&) {}), testing::has_large_tiles(device));
    EXPECT_FALSE(takes([](Matmul& product, Layer&) { product.alpha = 2; }));
    EXPECT_FALSE(takes([](Matmul& product, Layer& layer) { product.gate = layer.w.operand(); }));
    EXPECT_FALSE(
        takes([](Matmul& product, Layer&) { product.activation = operations::Activation::relu; }));
  }
}

}  // namespace
}  // namespace rensa

// Autocast: its scopes, the parameters that it casts once, gradients, and steps that are replayed.
// What each function computes in is tests/functions/function_cases_test.cc's.
#include "rensa/autograd/autocast.h"

#include <gtest/gtest.h>

#include <thread>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Floats = std::vector<float>;

Array random(const Shape& shape, Device device) {
  return xp::random::uniform(-1, 1, shape, float32, device);
}
/// What `node` took as its input i.
std::shared_ptr<VariableNode> input(const Variable& y, std::size_t i) {
  return y.creator()->inputs().at(i);
}

TEST(Autocast, ScopesStandInOneAnother) {
  Variable x(xp::ones({2, 2}));
  auto dtype = [&] { return F::matmul(x, x).dtype(); };
  EXPECT_EQ(dtype(), float32);
  {
    Autocast on;
    EXPECT_EQ(dtype(), bfloat16);
    {
      Autocast other(float16);
      EXPECT_EQ(dtype(), float16);
      Autocast off(none);
      EXPECT_EQ(dtype(), float32);
    }
    EXPECT_EQ(dtype(), bfloat16);
    ThreadState state = ThreadState::current().snapshot();
    std::thread([&] {
      EXPECT_EQ(dtype(), float32);
      ThreadState::install(state);
      EXPECT_EQ(dtype(), bfloat16);
    }).join();
  }
  EXPECT_EQ(dtype(), float32);
  EXPECT_THROW(Autocast{float32}, DtypeError);
}

TEST(Autocast, LeavesOtherDtypes) {
  Autocast on;
  Variable wide(xp::ones({2, 2}, float64)), narrow(xp::ones({2, 2}, bfloat16)),
      complex(xp::ones({2, 2}, complex64));
  EXPECT_EQ(F::matmul(wide, wide).dtype(), float64);
  EXPECT_EQ(F::matmul(wide, narrow).dtype(), float64);
  EXPECT_EQ(F::sum(wide).dtype(), float64);
  EXPECT_EQ(F::sum(complex).dtype(), complex64);
  EXPECT_EQ(F::exp(narrow).dtype(), float32);
  EXPECT_EQ(F::relu(narrow).dtype(), bfloat16);
  EXPECT_EQ((narrow + Variable(xp::ones({2, 2}))).dtype(), float32);
}

TEST(Autocast, AFunctionOfAUsersTakesWhatItIsGiven) {
  struct Own final : FunctionNode {
    Own() : FunctionNode("own") {}
    Arrays forward(const Arrays& x) override { return x; }
    Variables backward(const Indexes&, const Variables& gy) override { return gy; }
  };
  Autocast on;
  EXPECT_EQ(apply<Own>({Variable(xp::ones({2}))})[0].dtype(), float32);
}

TEST(Autocast, GradientsHaveTheDtypesOfTheLeaves) {
  for (Device device : testing::test_devices()) {
    for (Dtype narrow : {bfloat16, float16}) {
      Variable x(random({4, 3}, device)), W(random({2, 3}, device)), b(random({2}, device));
      Variable y;
      {
        Autocast on(narrow);
        y = F::linear(x, W, b);
      }
      EXPECT_EQ(y.dtype(), narrow);
      F::sum(F::cast(y, float32)).backward();
      for (const Variable& v : {x, W, b}) EXPECT_EQ(v.grad().dtype(), float32);
      Array rounded = W.array().astype(narrow).astype(float32);
      Array want = xp::broadcast_to(xp::sum(rounded, 0), {4, 3});
      EXPECT_TRUE(xp::allclose(x.grad(), want, 1e-2, 1e-2));
    }
  }
}

// Inside of the scope as outside of it.
TEST(Autocast, BackwardComputesAsForwardDid) {
  for (Device device : testing::test_devices()) {
    Array x0 = random({3, 4}, device), W0 = random({4, 4}, device);
    auto derivatives = [&](bool inside) {
      Variable x(x0), W(W0), y;
      std::optional<Autocast> on;
      on.emplace(bfloat16);
      y = F::sum(F::exp(F::matmul(F::tanh(F::matmul(x, W)), W)));
      if (!inside) on.reset();
      Variable g = grad({y}, {x}, {}, true)[0];
      EXPECT_EQ(g.dtype(), float32);
      Variable h = grad({g}, {W}, {constant(xp::ones({3, 4}, float32, device))})[0];
      EXPECT_EQ(h.dtype(), float32);
      Floats all = g.to_vector<float>();
      for (float value : h.to_vector<float>()) all.push_back(value);
      return all;
    };
    Floats outside = derivatives(false);
    EXPECT_EQ(derivatives(true), outside);
    Variable x(x0), W(W0);
    Variable y = F::sum(F::exp(F::matmul(F::tanh(F::matmul(x, W)), W)));
    Variable g = grad({y}, {x}, {}, true)[0];
    Array h = grad({g}, {W}, {constant(xp::ones({3, 4}, float32, device))})[0].array();
    Array got = xp::array(outside, device);
    double scale = xp::max(xp::absolute(h)).item<float>();
    EXPECT_TRUE(xp::allclose(got[Slice(12, 28)].reshape({4, 4}), h, 0, 0.1 * scale));
    scale = xp::max(xp::absolute(g.array())).item<float>();
    EXPECT_TRUE(xp::allclose(got[Slice(0, 12)].reshape({3, 4}), g.array(), 0, 0.05 * scale));
  }
}

// --- parameters ---

TEST(Autocast, CastsAParameterOnceUntilItChanges) {
  for (Device device : testing::test_devices()) {
    L::Linear layer(3, 3);
    layer.to(device);
    optimizers::SGD optimizer(0.5);
    optimizer.setup(layer);
    Variable x = constant(random({2, 3}, device));
    Autocast on;
    Variable y = layer(x), again = layer(x);
    auto first = input(y, 1);
    EXPECT_EQ(first->dtype, bfloat16);
    EXPECT_EQ(input(again, 1), first);
    {
      Autocast other(float16);
      EXPECT_EQ(input(layer(x), 1)->dtype, float16);
    }
    auto expect_new = [&, last = first](const char* what) mutable {
      Variable now = layer(x);
      auto weights = input(now, 1);
      EXPECT_NE(weights, last) << what;
      Array want;
      {
        Autocast off(none);
        want =
            F::linear(F::cast(x, bfloat16), F::cast(layer.W, bfloat16), F::cast(layer.b, bfloat16))
                .array();
      }
      EXPECT_EQ(now.to_vector<float>(), want.to_vector<float>()) << what;
      last = weights;
    };
    F::sum(y + again).backward();
    EXPECT_EQ(layer.W.grad().dtype(), float32);
    optimizer.update();
    expect_new("updated");
    layer.W.array() *= 2;
    expect_new("changed in place");
    layer.W.copydata(constant(random({3, 3}, device)));
    expect_new("copied");
  }
}

TEST(Autocast, WhatWasCastWithoutAGraphIsNoPartOfOne) {
  L::Linear layer(3, 3);
  Variable x = constant(xp::ones({2, 3}));
  Autocast on;
  {
    no_backprop_mode off;
    EXPECT_FALSE(layer(x).creator());
  }
  F::sum(layer(x)).backward();
  EXPECT_TRUE(layer.W.grad().defined());
}

TEST(Autocast, AParameterThatIsGoneIsNotTakenForAnother) {
  Autocast on;
  Variable x = constant(xp::ones({1, 1}));
  for (int i = 1; i < 200; ++i) {
    L::Linear layer(1, 1, {.initialW = i});
    EXPECT_EQ(layer(x).array().item<float>(), i);
  }
}

// --- replays ---

struct Net : Chain<Net> {
  L::Linear l1{8, 16}, l2{16, 4};
  L::BatchNormalization bn{16};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("bn", bn); }
  Variable operator()(const Variable& x) const { return l2(F::relu(bn(l1(x)))); }
};

TEST(Autocast, IsReplayedBitForBitInsideAndAround) {
  for (Device device : testing::test_devices()) {
    for (bool around : {false, true}) {
      xp::random::seed(3);
      Net eager;
      eager.to(device);
      Net captured(eager);
      Array x0 = random({32, 8}, device);
      Array t0 = xp::argmax(x0[{Slice(), Slice(0, 4)}], 1);
      auto train = [&](Net& net, bool record) {
        optimizers::MomentumSGD optimizer(0.1);
        optimizer.setup(net);
        auto step = [&](const Variables& in) {
          std::optional<Autocast> on;
          if (!around) on.emplace(bfloat16);
          Variable loss = F::softmax_cross_entropy(net(in[0]), in[1]);
          on.reset();
          net.cleargrads();
          loss.backward();
          optimizer.update();
          return Variables{loss};
        };
        CaptureCache cache({.replay_lists = true});
        Floats losses;
        std::optional<Autocast> on;
        if (around) on.emplace(bfloat16);
        for (int i = 0; i < 12; ++i) {
          Variables in{constant(x0), constant(t0)};
          losses.push_back((record ? cache.call(step, in) : step(in))[0].item<float>());
          {  // what is cast between the steps is what they left
            std::optional<Autocast> evaluate;
            evaluate.emplace(bfloat16);
            UsingConfig testing(&Config::train, false);
            losses.push_back(F::sum(net(in[0])).item<float>());
          }
        }
        if (record) {
          EXPECT_GT(cache.stats().replays, 6) << cache.stats().last_fallback;
        }
        return losses;
      };
      Floats want = train(eager, false), got = train(captured, true);
      EXPECT_EQ(got, want);
      EXPECT_LT(want[22], want[0] / 2);
    }
  }
}

TEST(Autocast, IsPartOfASignature) {
  for (Device device : testing::test_devices()) {
    Variable x = constant(xp::ones({4, 4}, float32, device));
    auto step = capture([](const Variable& v) { return F::matmul(v, v); }, {.replay_lists = true});
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(step(x).dtype(), float32);
      Autocast on;
      EXPECT_EQ(step(x).dtype(), bfloat16);
      UsingConfig mixed(&Config::dtype, mixed_bf16);
      EXPECT_EQ(step(x).dtype(), bfloat16);
    }
    EXPECT_GE(step.stats().recordings, 3);
  }
}

}  // namespace
}  // namespace rensa

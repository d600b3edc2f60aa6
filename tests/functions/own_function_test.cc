// What a user has by rensa/rensa.h alone: functions of his own, those of
// docs/write_your_own_function.md, and all names.
#include <gtest/gtest.h>

#include <type_traits>

#include "rensa/rensa.h"
#include "tests/testing.h"

namespace rensa {
namespace {

// Of array routines.
class Softsign final : public FunctionNode {
 public:
  Softsign() : FunctionNode("softsign") {}
  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    return {x[0] / (1 + xp::abs(x[0]))};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0];
    return {gy[0] / F::square(1 + F::absolute(x))};
  }
};

Variable softsign(const Variable& x) { return apply<Softsign>({x})[0]; }

// Of two inputs, with an option.
class Blend final : public FunctionNode {
 public:
  explicit Blend(double weight) : FunctionNode("blend"), weight_(weight) {}
  Arrays forward(const Arrays& x) override {
    if (x[0].shape() != x[1].shape()) {
      throw ShapeError("blend: " + x[0].view().describe() + " and " + x[1].view().describe() +
                       " are to be of one shape");
    }
    return {weight_ * x[0] + (1 - weight_) * x[1]};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables gradients;
    for (int input : targets) gradients.push_back((input == 0 ? weight_ : 1 - weight_) * gy[0]);
    return gradients;
  }

 private:
  double weight_;
};

Variable blend(const Variable& a, const Variable& b, double weight) {
  return apply<Blend>({a, b}, weight)[0];
}

// Of kernels of one's own.
class SoftsignGrad final : public FunctionNode {
 public:
  SoftsignGrad() : FunctionNode("softsign_grad") {}
  Arrays forward(const Arrays& in) override {
    static const ElementwiseKernel kernel("T x, T gy", "T gx",
                                          "T d = 1 + fabs(x); gx = gy / (d * d)", "softsign_grad");
    retain_inputs({0, 1});
    return {kernel(in[0], in[1])};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    Variables in = get_retained_inputs();
    Variable d = 1 + F::absolute(in[0]), ggy = ggx[0] / F::square(d);
    return {-2 * ggy * in[1] * F::sign(in[0]) / d, ggy};
  }
};

class KernelSoftsign final : public FunctionNode {
 public:
  KernelSoftsign() : FunctionNode("softsign") {}
  Arrays forward(const Arrays& x) override {
    static const ElementwiseKernel kernel("T x", "T y", "y = x / (1 + fabs(x))", "softsign");
    retain_inputs({0});
    return {kernel(x[0])};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    return rensa::apply<SoftsignGrad>({get_retained_inputs()[0], gy[0]});
  }
};

Variable kernel_softsign(const Variable& x) { return apply<KernelSoftsign>({x})[0]; }

// Fused.
class FusedSoftsign final : public FunctionNode {
 public:
  FusedSoftsign() : FunctionNode("softsign") {}
  Arrays forward(const Arrays& x) override {
    static const auto fused = fuse([](const Array& a) { return a / (1 + xp::abs(a)); });
    retain_outputs({0});
    return {fused(x[0])};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable y = get_retained_outputs()[0];
    if (config().enable_backprop) return {gy[0] * F::square(1 - F::absolute(y))};
    static const auto fused = fuse([](const Array& a, const Array& g) {
      Array d = 1 - xp::abs(a);
      return g * (d * d);
    });
    return {constant(fused(y.array(), gy[0].array()))};
  }
};

Variable fused_softsign(const Variable& x) { return apply<FusedSoftsign>({x})[0]; }

using Function = Variable (*)(const Variable&);

/// The three ways to write it.
std::vector<std::pair<const char*, Function>> softsigns() {
  return {{"routines", softsign}, {"kernel", kernel_softsign}, {"fused", fused_softsign}};
}

TEST(OwnFunction, Gradients) {
  for (Device device : testing::test_devices()) {
    Array x = xp::array({{-2.0, -0.5, 0.25}, {0.75, 1.5, 3.0}}, device);
    Array gy = xp::array({{1.0, 2.0, -1.0}, {0.5, -3.0, 1.0}}, device);
    for (auto [how, function] : softsigns()) {
      SCOPED_TRACE(std::string(how) + " on " + device.str());
      gradient_check::Function f = [function](const Variables& in) {
        return Variables{function(in[0])};
      };
      gradient_check::check_backward(f, {x}, {gy});
      gradient_check::check_double_backward(f, {x}, {gy});
      EXPECT_TRUE(xp::allclose(function(Variable(x)).array(), x / (1 + xp::abs(x)), 1e-12));
    }
  }
}

TEST(OwnFunction, GradientsOfTwoInputs) {
  for (Device device : testing::test_devices()) {
    Array a = xp::array({1.0, -2.0, 3.0}, device), b = xp::array({0.5, 0.25, 4.0}, device);
    auto f = [](const Variables& in) { return Variables{blend(in[0], in[1], 0.25)}; };
    gradient_check::check_backward(f, {a, b});
    gradient_check::check_double_backward(f, {a, b});
    Variable x(a);
    blend(constant(b), x, 0.25).sum().backward();  // the second one alone
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0.75, 0.75, 0.75}));
    EXPECT_THROW(blend(x, x.reshape({3, 1}), 0.25), ShapeError);
  }
}

TEST(OwnFunction, SecondDerivatives) {
  for (Device device : testing::test_devices()) {
    for (auto [how, function] : softsigns()) {
      SCOPED_TRACE(std::string(how) + " on " + device.str());
      Variable x(xp::array({-1.0, 1.0, 3.0}, device));
      Variable y = function(x).sum();
      Variable gx = grad({y}, {x}, {}, true)[0];  // with a graph of its own
      Variable ggx = grad({gx.sum()}, {x})[0];    // -2 sign(x) / (1 + |x|) ** 3
      EXPECT_TRUE(xp::allclose(ggx.array(), xp::array({0.25, -0.25, -0.03125}, device), 1e-12));
    }
  }
}

/// A few updates of a layer with the function behind it, and whether the last ones were replays.
std::vector<float> train(Device device, Function function, bool captured) {
  xp::random::seed(3);
  L::Linear layer(4, 3);
  layer.to(device);
  optimizers::MomentumSGD optimizer;
  optimizer.setup(layer);
  Array x = xp::random::uniform(-1, 1, {8, 4}, float32, cpu()).to(device);
  Array t = xp::random::uniform(-1, 1, {8, 3}, float32, cpu()).to(device);
  auto loss = [&](const Variable& in) {
    return F::mean_squared_error(function(layer(in)), constant(t));
  };
  auto step = capture([&](const Variable& in) { return optimizer.update(loss, in); },
                      {.replay_lists = true});
  std::vector<float> losses;
  for (int i = 0; i < 6; ++i) {
    Variable value = captured ? step(constant(x)) : optimizer.update(loss, constant(x));
    losses.push_back(value.item<float>());
  }
  if (captured) {
    EXPECT_GT(step.stats().replays, 0) << step.stats().last_fallback;
  }
  return losses;
}

TEST(OwnFunction, CapturedStepsEqualEagerOnes) {
  for (Device device : testing::test_devices()) {
    for (auto [how, function] : softsigns()) {
      SCOPED_TRACE(std::string(how) + " on " + device.str());
      std::vector<float> eager = train(device, function, false);
      EXPECT_EQ(train(device, function, true), eager);
      EXPECT_LT(eager.back(), eager.front());
    }
  }
}

// The names that Chainer's guide (docs/guide.md) imports. Its `utils` and `backends` have no
// counterpart but the names in xp and cuda.
TEST(OneHeader, HasAllNamesOfChainersGuide) {
  static_assert(std::is_base_of_v<Link, ChainList>);
  static_assert(std::is_polymorphic_v<FunctionNode>);
  (void)&cuda::is_available, (void)&gradient_check::check_double_backward;
  (void)&datasets::get_mnist;
  Variable x = F::relu(xp::ones({2}));
  L::Linear layer(2, 2, {.initialW = initializers::HeNormal()});
  report({{"x", x}}, layer);  // nobody listens
  serializers::LoadNpzOptions options;
  optimizers::SGD optimizer;
  extensions::LogReport log;
  training::Trigger trigger(1, "epoch");
  iterators::SerialIterator iterator(datasets::TupleDataset(xp::ones({3})), 2);
  EXPECT_EQ(iterator.next()->size(), 2);
}

}  // namespace
}  // namespace rensa

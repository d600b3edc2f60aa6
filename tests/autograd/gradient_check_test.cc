// The checker finds what is wrong, and passes what is right.
#include "rensa/autograd/gradient_check.h"

#include <gtest/gtest.h>

#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// x ** 3 with the gradient `factor` * x ** 2.
class Cube final : public FunctionNode {
 public:
  explicit Cube(double factor) : FunctionNode("cube"), factor_(factor) {}
  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    return {x[0] * x[0] * x[0]};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {gy[0] * F::square(get_retained_inputs()[0]) * factor_};
  }

 private:
  double factor_;
};

gradient_check::Function cube(double factor) {
  return [factor](const Variables& x) { return apply<Cube>({x[0]}, factor); };
}

TEST(GradientCheck, NumericalGrad) {
  for (Device device : testing::test_devices()) {
    Array x = xp::array({1.0, 2.0, 3.0}, device), w = xp::array({1.0, 10.0, 100.0}, device);
    Array g = gradient_check::numerical_grad([&] { return Arrays{x * x}; }, {x}, {w})[0];
    EXPECT_TRUE(xp::allclose(g, xp::array({2.0, 40.0, 600.0}), 1e-6));
    EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3}));
    // As the strides of an input may be.
    Array turned = xp::arange(6, device).astype(float64).reshape({2, 3}).T();
    Array gy = xp::arange(6, device).astype(float64).reshape({3, 2});
    g = gradient_check::numerical_grad([&] { return Arrays{turned * turned}; }, {turned}, {gy})[0];
    EXPECT_TRUE(xp::allclose(g, (turned * gy * 2).to(cpu()), 1e-6));
    EXPECT_EQ(turned.to_vector<double>(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
    Array one = xp::broadcast_to(xp::ones({1}, float64, device), {3});
    EXPECT_THROW(gradient_check::numerical_grad([&] { return Arrays{one}; }, {one}, {w}),
                 ValueError);
  }
}

TEST(GradientCheck, TellsRightFromWrong) {
  for (Device device : testing::test_devices()) {
    Array x = xp::array({1.0, 2.0, 3.0}, device);
    gradient_check::check_backward(cube(3), {x});
    gradient_check::check_double_backward(cube(3), {x});
    EXPECT_THROW(gradient_check::check_backward(cube(3.01), {x}), ValueError);
    EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3}));
  }
}

TEST(GradientCheck, FindsAWrongSecondDerivative) {
  // The gradient is right, and forgets how it depends on x.
  class Forgets final : public FunctionNode {
   public:
    Forgets() : FunctionNode("forgets") {}
    Arrays forward(const Arrays& x) override {
      retain_inputs({0});
      return {x[0] * x[0]};
    }
    Variables backward(const Indexes&, const Variables& gy) override {
      return {gy[0] * constant(get_retained_inputs()[0].array() * 2)};
    }
  };
  auto f = [](const Variables& x) { return apply<Forgets>({x[0]}); };
  Array x = xp::array({1.0, 2.0});
  gradient_check::check_backward(f, {x});
  EXPECT_THROW(gradient_check::check_double_backward(f, {x}), ValueError);
}

TEST(GradientCheck, ChecksParameters) {
  Parameter p(Initializer(xp::array({1.0, 2.0})));
  auto right = [&](const Variables& x) { return Variables{x[0] * p * p}; };
  auto wrong = [&](const Variables& x) { return Variables{x[0] + apply<Cube>({p}, 2)[0]}; };
  Array x = xp::array({3.0, 4.0});
  gradient_check::check_backward(right, {x}, {}, {p});
  gradient_check::check_double_backward(right, {x}, {}, {p});
  gradient_check::check_backward(wrong, {x});
  EXPECT_THROW(gradient_check::check_backward(wrong, {x}, {}, {p}), ValueError);
  EXPECT_EQ(p.array().to_vector<double>(), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace rensa

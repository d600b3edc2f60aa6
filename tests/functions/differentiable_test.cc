// Differentiable rows of pointwise.def: the gradient's kernel against the gradient as functions.
#include "rensa/functions/differentiable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rensa/array/pointwise.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/recording.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using functions::Differentiable;
using functions::DifferentiableValue;

// Every one there is.
std::vector<const Differentiable*> all() {
  return {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_DIFFERENTIABLE(name, rule, keep, inputs, outputs, statements, given, gradients, \
                             derivative)                                                      \
  &functions::rows::name,
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
  };
}

TEST(Differentiable, TheKernelIsTheGradientAsFunctions) {
  xp::random::seed(5);
  const std::pair<Dtype, double> tolerances[] = {
      {float64, 1e-13}, {float32, 1e-5}, {float16, 1e-2}, {bfloat16, 8e-2}};
  for (Device device : testing::test_devices()) {
    for (const Differentiable* function : all()) {
      for (auto [dtype, tolerance] : tolerances) {
        SCOPED_TRACE(std::string(function->row.name) + " on " + device.str() + " " +
                     std::string(dtype_name(dtype)));
        std::vector<DifferentiableValue> inputs;
        for (int k = 0; k < function->gradient.inputs; ++k) {
          Array x = xp::random::uniform(-3, 3, {50, 41}, float64, device);
          inputs.emplace_back(constant(x.astype(dtype)));
        }
        Variables kernel, composed;
        {
          no_backprop_mode off;
          kernel = functions::gradient(*function, inputs);
        }
        composed = functions::gradient(*function, inputs);
        ASSERT_EQ(kernel.size(), static_cast<std::size_t>(function->gradient.outputs));
        ASSERT_EQ(composed.size(), kernel.size());
        for (std::size_t k = 0; k < kernel.size(); ++k) {
          EXPECT_EQ(kernel[k].dtype(), dtype);
          EXPECT_EQ(composed[k].dtype(), dtype);
          EXPECT_TRUE(xp::allclose(kernel[k].array().astype(float64),
                                   composed[k].array().astype(float64), tolerance, tolerance))
              << "gradient " << k;
        }
      }
    }
  }
}

TEST(Differentiable, OneLaunchForwardAndOneBackward) {
  using Function = Variable (*)(const Variable&);
  const std::pair<const char*, Function> functions[] = {
      {"sigmoid", F::sigmoid},
      {"tanh", F::tanh},
      {"gelu", F::gelu},
      {"silu", F::silu},
      {"erf", F::erf},
      {"relu", F::relu},
      {"hard_sigmoid", F::hard_sigmoid},
      {"softplus", [](const Variable& x) { return F::softplus(x); }},
      {"leaky_relu", [](const Variable& x) { return F::leaky_relu(x); }},
      {"elu", [](const Variable& x) { return F::elu(x); }},
      {"selu", [](const Variable& x) { return F::selu(x); }},
      {"clipped_relu", [](const Variable& x) { return F::clipped_relu(x); }},
  };
  for (Device device : testing::test_devices()) {
    for (auto [name, function] : functions) {
      Variable x(xp::ones({5, 7}, float32, device));
      Array gy = xp::ones({5, 7}, float32, device);
      Recording recording;
      Variable y;
      {
        RecorderScope scope(&recording);
        y = function(x);
        y.set_grad(gy);
        y.backward();
      }
      ASSERT_EQ(recording.operations.size(), 2u) << name;
      EXPECT_STREQ(recording.operations[0]->name(), name);
      EXPECT_EQ(recording.operations[1]->name(), std::string(name) + "_grad");
    }
  }
}

// Far out the derivatives are numbers too, the second ones as well.
TEST(Differentiable, DerivativesOfLargeNumbersAreFinite) {
  using Function = Variable (*)(const Variable&);
  const std::pair<const char*, Function> functions[] = {
      {"sigmoid", F::sigmoid},
      {"tanh", F::tanh},
      {"gelu", F::gelu},
      {"silu", F::silu},
      {"softplus", [](const Variable& x) { return F::softplus(x); }},
      {"elu", [](const Variable& x) { return F::elu(x); }},
      {"selu", [](const Variable& x) { return F::selu(x); }},
  };
  for (Device device : testing::test_devices()) {
    for (auto [name, function] : functions) {
      Variable x(xp::array({-1e4f, -120.f, 120.f, 1e4f}, device));
      F::sum(function(x)).backward({.enable_double_backprop = true});
      Variable gx = x.grad_var();
      x.cleargrad();
      for (float value : gx.array().to_vector<float>()) EXPECT_TRUE(std::isfinite(value)) << name;
      F::sum(gx).backward();
      for (float value : x.grad().to_vector<float>()) EXPECT_NEAR(value, 0, 1e-6) << name;
    }
  }
}

TEST(Differentiable, ComplexNumbersAreForTheRowsThatTakeThem) {
  for (Device device : testing::test_devices()) {
    Array z = xp::full({2}, std::complex<double>(0.5, 0.25), complex128, device);
    auto want = std::tanh(std::complex<double>(0.5, 0.25));
    auto got = F::tanh(constant(z)).array().to_vector<std::complex<double>>();
    EXPECT_NEAR(std::abs(got[1] - want), 0, 1e-14);
    EXPECT_THROW(F::sigmoid(constant(z)), DtypeError);
    EXPECT_EQ(F::sigmoid(constant(xp::zeros({2}, int32, device))).dtype(), float64);
  }
}

TEST(Differentiable, NanStays) {
  for (Device device : testing::test_devices()) {
    for (auto* function : all()) {
      if (function->row.outputs > 1) continue;
      std::vector<xp::ElementwiseArgument> arguments;
      Array x = xp::full({3}, std::numeric_limits<float>::quiet_NaN(), float32, device);
      arguments.emplace_back(x);
      for (int k = 1; k < function->row.inputs; ++k) arguments.emplace_back(1.0);
      Array y = detail::pointwise(function->row, arguments)[0];
      EXPECT_TRUE(std::isnan(y.to_vector<float>()[0])) << function->row.name;
    }
  }
}

}  // namespace
}  // namespace rensa

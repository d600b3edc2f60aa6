// Differentiable rows of pointwise.def: the gradient's kernel against the gradient as functions.
#include "rensa/functions/differentiable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "rensa/array/pointwise.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/differentiable_rows.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/recording.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using functions::Differentiable;
using functions::DifferentiableValue;
using functions::Gradient;

// Every one there is.
std::vector<const Differentiable*> all() {
  return {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_GRADIENT(name, rule, given, gradients, derivative)
#define RENSA_DIFFERENTIABLE(name, rule, keep, inputs, outputs, statements, given, gradients, \
                             derivative)                                                      \
  &functions::rows::name,
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
  };
}

std::vector<const Gradient*> all_gradients() {
  return {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_GRADIENT(name, rule, given, gradients_, derivative) &functions::gradients::name,
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
  };
}

/// The exponent of a power and the like are numbers for the functions: they have no gradient for
/// it.
bool is_number(const Gradient& gradient, int input) {
  using namespace functions::gradients;
  bool numbered = &gradient == &power || &gradient == &polygamma || &gradient == &zeta;
  return numbered && input == gradient.row.inputs - 1;
}

/// Where inputs lie: not where a half type's rounding of an intermediate value decides.
std::pair<double, double> range_of(const Gradient& gradient) {
  using namespace functions::gradients;
  if (&gradient == &arcsin || &gradient == &arccos || &gradient == &arctanh) return {-0.8, 0.8};
  if (&gradient == &arccosh) return {1.2, 3};
  if (&gradient == &log1p) return {-0.8, 3};
  if (&gradient == &fmod) return {0.6, 0.95};
  if (&gradient == &lgamma || &gradient == &digamma || &gradient == &polygamma) return {2, 5};
  if (&gradient == &zeta) return {1, 3};
  if (&gradient == &erfcx) return {-1.5, 3};
  if (&gradient == &binary_cross_entropy) return {0.2, 0.8};
  if (&gradient == &hinge) return {-0.9, 0.9};
  return {-3, 3};
}

TEST(Differentiable, TheKernelIsTheGradientAsFunctions) {
  const std::pair<Dtype, double> tolerances[] = {
      {float64, 1e-13}, {float32, 1e-5}, {float16, 1e-2}, {bfloat16, 8e-2}};
  for (Device device : testing::test_devices()) {
    for (const Gradient* gradient : all_gradients()) {
      xp::random::seed(5);
      auto [low, high] = range_of(*gradient);
      for (auto [dtype, tolerance] : tolerances) {
        SCOPED_TRACE(std::string(gradient->row.name) + " on " + device.str() + " " +
                     std::string(dtype_name(dtype)));
        std::vector<DifferentiableValue> inputs;
        for (int k = 0; k < gradient->row.inputs; ++k) {
          if (is_number(*gradient, k)) {
            inputs.emplace_back(3.0);
            continue;
          }
          Array x = xp::random::uniform(low, high, {50, 41}, float64, device);
          inputs.emplace_back(constant(x.astype(dtype)));
        }
        Variables kernel, composed;
        {
          no_backprop_mode off;
          kernel = functions::gradients_of(*gradient, inputs);
        }
        composed = functions::gradients_of(*gradient, inputs);
        ASSERT_EQ(kernel.size(), static_cast<std::size_t>(gradient->row.outputs));
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

// Where numbers end too: zeros of both signs, infinities, NaN, what overflows when it is squared.
TEST(Differentiable, TheKernelIsTheGradientAsFunctionsAtTheEdges) {
  xp::random::seed(6);
  const double inf = std::numeric_limits<double>::infinity();
  Array edges = xp::array({0.0, -0.0, inf, -inf, std::nan(""), 1e30, -1e-30, 1.0, -2.5});
  for (Device device : testing::test_devices()) {
    for (const Gradient* gradient : all_gradients()) {
      for (Dtype dtype : {float64, float32}) {
        SCOPED_TRACE(std::string(gradient->row.name) + " on " + device.str() + " " +
                     std::string(dtype_name(dtype)));
        std::vector<DifferentiableValue> inputs;
        for (int k = 0; k < gradient->row.inputs; ++k) {
          if (is_number(*gradient, k)) {
            inputs.emplace_back(gradient == &functions::gradients::polygamma ? 3.0 : 2.5);
            continue;
          }
          Array x = edges[xp::random::randint(0, edges.size(), {2000})];
          inputs.emplace_back(constant(x.astype(dtype).to(device)));
        }
        Variables kernel, composed = functions::gradients_of(*gradient, inputs);
        {
          no_backprop_mode off;
          kernel = functions::gradients_of(*gradient, inputs);
        }
        for (std::size_t k = 0; k < kernel.size(); ++k) {
          EXPECT_TRUE(xp::allclose(kernel[k].array(), composed[k].array(), 1e-5, 1e-30, true))
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
      {"square", F::square},
      {"sqrt", F::sqrt},
      {"sin", F::sin},
      {"cos", F::cos},
      {"absolute", F::absolute},
      {"power", [](const Variable& x) { return F::pow(x, 2.5); }},
      {"tan", F::tan},
      {"log1p", F::log1p},
      {"rsqrt", F::rsqrt},
      {"erfinv", F::erfinv},
      {"lgamma", F::lgamma},
      {"clip", [](const Variable& x) { return F::clip(x, 0, 2); }},
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

/// The operations of a function's backward, of float32 operands of one shape.
std::vector<std::string> backward_of(const std::function<Variable()>& function) {
  Recording recording;
  Variable y = function();
  y.set_grad(xp::ones(y.shape(), y.dtype(), y.device()));
  {
    RecorderScope scope(&recording);
    y.backward();
  }
  std::vector<std::string> names;
  for (const auto& operation : recording.operations) names.emplace_back(operation->name());
  return names;
}

TEST(Differentiable, LaunchesOfTheGradientsOfTwoOperands) {
  using Function = Variable (*)(const Variable&, const Variable&);
  using Names = std::vector<std::string>;
  struct Row {
    Function function;
    Names both, first;  // where both operands have a gradient, and where the first one alone has
    Names broadcast;    // both, where the second one is broadcast
  };
  const Row rows[] = {
      {F::multiply, {"multiply_grad"}, {"multiply"}, {"multiply", "multiply", "sum"}},
      {F::divide, {"divide_grad"}, {"divide"}, {"divide_grad", "sum"}},
      {F::maximum, {"maximum_grad"}, {"maximum_grad"}, {"maximum_grad", "sum"}},
      {F::minimum, {"minimum_grad"}, {"minimum_grad"}, {"minimum_grad", "sum"}},
      {[](const Variable& a, const Variable& b) { return F::where(b.array() < 2.f, a, b); },
       {"where", "where"},
       {"where"},
       {"where", "where", "sum"}},
  };
  for (Device device : testing::test_devices()) {
    for (const Row& row : rows) {
      Variable a(xp::array({1.f, 2.f, 3.f}, device)), b(xp::array({2.f, 2.f, 1.f}, device));
      Variable wide(xp::ones({4, 3}, float32, device));
      EXPECT_EQ(backward_of([&] { return row.function(a, b); }), row.both);
      a.cleargrad(), b.cleargrad();
      EXPECT_EQ(backward_of([&] { return row.function(a, b.array()); }), row.first);
      EXPECT_EQ(backward_of([&] { return row.function(wide, b); }), row.broadcast);
    }
  }
}

TEST(Differentiable, SoftmaxTakesOneLaunch) {
  using Names = std::vector<std::string>;
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({4, 3}, float32, device));
    EXPECT_EQ(backward_of([&] { return F::softmax(x); }), (Names{"softmax_grad"}));
    x.cleargrad();
    EXPECT_EQ(backward_of([&] { return F::log_softmax(x); }), (Names{"log_softmax_grad"}));
  }
}

TEST(Differentiable, GradientsOfComplexNumbers) {
  using Complex = std::complex<double>;
  for (Device device : testing::test_devices()) {
    const Complex at(0.5, 0.25), c(2, -1);
    const std::pair<std::function<Variable(const Variable&)>, Complex> rows[] = {
        {[&](const Variable& z) { return c / z; }, -c / (at * at)},
        {[&](const Variable& z) { return z / (z * z); }, -1.0 / (at * at)},
        {[](const Variable& z) { return F::square(z); }, 2.0 * at},
        {[](const Variable& z) { return F::sqrt(z); }, 0.5 / std::sqrt(at)},
        {[](const Variable& z) { return F::pow(z, 2.5); }, 2.5 * std::pow(at, 1.5)},
        {[](const Variable& z) { return F::sin(z); }, std::cos(at)},
        {[](const Variable& z) { return F::cos(z); }, -std::sin(at)},
        {[](const Variable& z) { return F::tanh(z); }, 1.0 - std::tanh(at) * std::tanh(at)},
    };
    for (bool recorded : {false, true}) {
      for (std::size_t k = 0; k < std::size(rows); ++k) {
        Variable z(xp::full({2}, at, complex128, device));
        F::sum(rows[k].first(z)).backward({.enable_double_backprop = recorded});
        Complex got = z.grad().to_vector<Complex>()[1];
        EXPECT_NEAR(std::abs(got - rows[k].second), 0, 1e-13) << k;
      }
    }
  }
}

// Of operands that are equal the first one has the gradient, of NaN the second one.
TEST(Differentiable, GradientsOfEqualOperands) {
  for (Device device : testing::test_devices()) {
    float nan = std::numeric_limits<float>::quiet_NaN();
    for (bool greater : {true, false}) {
      Variable a(xp::array({1.f, 2.f, 3.f, nan}, device));
      Variable b(xp::array({2.f, 2.f, 2.f, 2.f}, device));
      F::sum(greater ? F::maximum(a, b) : F::minimum(a, b)).backward();
      std::vector<float> ga =
          greater ? std::vector<float>{0, 1, 1, 0} : std::vector<float>{1, 1, 0, 0};
      EXPECT_EQ(a.grad().to_vector<float>(), ga);
      for (float& g : ga) g = 1 - g;
      EXPECT_EQ(b.grad().to_vector<float>(), ga);
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

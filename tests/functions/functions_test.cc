// Every function by one table: values against a reference, first and second derivatives against
// differences, half types against float64, strided, empty and 0-d inputs, on every device.
#include "rensa/functions/functions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/gradient_check.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Reference = double (*)(double, double);

struct Case {
  const char* name;
  gradient_check::Function f;
  std::vector<Shape> shapes;
  double low = -2, high = 2;      // where the inputs lie
  Reference reference = nullptr;  // of elementwise functions: of the first two inputs
};

#define RENSA_CASE(expression) [](const Variables& x) -> Variables { return {expression}; }
#define RENSA_REFERENCE(expression) \
  [](double a, double b) -> double { return (void)a, (void)b, expression; }

const Shape kSquare{3, 4};

std::vector<Case> cases() {
  Array mask = xp::array({true, false, true, true});
  return {
      // elementwise, one input
      {"negative", RENSA_CASE(-x[0]), {kSquare}, -2, 2, RENSA_REFERENCE(-a)},
      {"square", RENSA_CASE(F::square(x[0])), {kSquare}, -2, 2, RENSA_REFERENCE(a * a)},
      {"sqrt", RENSA_CASE(F::sqrt(x[0])), {kSquare}, 0.5, 2, RENSA_REFERENCE(std::sqrt(a))},
      {"exp", RENSA_CASE(F::exp(x[0])), {kSquare}, -2, 2, RENSA_REFERENCE(std::exp(a))},
      {"log", RENSA_CASE(F::log(x[0])), {kSquare}, 0.5, 2, RENSA_REFERENCE(std::log(a))},
      {"sin", RENSA_CASE(F::sin(x[0])), {kSquare}, -2, 2, RENSA_REFERENCE(std::sin(a))},
      {"cos", RENSA_CASE(F::cos(x[0])), {kSquare}, -2, 2, RENSA_REFERENCE(std::cos(a))},
      {"absolute", RENSA_CASE(F::absolute(x[0])), {kSquare}, 0.5, 2, RENSA_REFERENCE(std::abs(a))},
      {"absolute of negatives",
       RENSA_CASE(F::absolute(x[0])),
       {kSquare},
       -2,
       -0.5,
       RENSA_REFERENCE(std::abs(a))},
      {"pow 3", RENSA_CASE(F::pow(x[0], 3)), {kSquare}, 0.5, 2, RENSA_REFERENCE(a * a * a)},
      {"pow -0.5",
       RENSA_CASE(F::pow(x[0], -0.5)),
       {kSquare},
       0.5,
       2,
       RENSA_REFERENCE(1 / std::sqrt(a))},
      {"x + c", RENSA_CASE(x[0] + 2), {kSquare}, -2, 2, RENSA_REFERENCE(a + 2)},
      {"c + x", RENSA_CASE(2.5 + x[0]), {kSquare}, -2, 2, RENSA_REFERENCE(a + 2.5)},
      {"x - c", RENSA_CASE(x[0] - 2), {kSquare}, -2, 2, RENSA_REFERENCE(a - 2)},
      {"c - x", RENSA_CASE(2 - x[0]), {kSquare}, -2, 2, RENSA_REFERENCE(2 - a)},
      {"x * c", RENSA_CASE(x[0] * 3), {kSquare}, -2, 2, RENSA_REFERENCE(a * 3)},
      {"c * x", RENSA_CASE(3 * x[0]), {kSquare}, -2, 2, RENSA_REFERENCE(a * 3)},
      {"x / c", RENSA_CASE(x[0] / 4), {kSquare}, -2, 2, RENSA_REFERENCE(a / 4)},
      {"c / x", RENSA_CASE(3 / x[0]), {kSquare}, 0.5, 2, RENSA_REFERENCE(3 / a)},
      {"relu", RENSA_CASE(F::relu(x[0])), {kSquare}, 0.1, 2, RENSA_REFERENCE(a)},
      {"relu of negatives", RENSA_CASE(F::relu(x[0])), {kSquare}, -2, -0.1, RENSA_REFERENCE(0.0)},
      {"sigmoid",
       RENSA_CASE(F::sigmoid(x[0])),
       {kSquare},
       -2,
       2,
       RENSA_REFERENCE(1 / (1 + std::exp(-a)))},
      {"tanh", RENSA_CASE(F::tanh(x[0])), {kSquare}, -2, 2, RENSA_REFERENCE(std::tanh(a))},
      {"erf", RENSA_CASE(F::erf(x[0])), {kSquare}, -2, 2, RENSA_REFERENCE(std::erf(a))},
      {"softplus",
       RENSA_CASE(F::softplus(x[0])),
       {kSquare},
       -2,
       2,
       RENSA_REFERENCE(std::log1p(std::exp(a)))},
      {"softplus, beta",
       RENSA_CASE(F::softplus(x[0], 2.5)),
       {kSquare},
       -2,
       2,
       RENSA_REFERENCE(std::log1p(std::exp(2.5 * a)) / 2.5)},
      {"leaky_relu", RENSA_CASE(F::leaky_relu(x[0])), {kSquare}, 0.1, 2, RENSA_REFERENCE(a)},
      {"leaky_relu of negatives",
       RENSA_CASE(F::leaky_relu(x[0], 0.125)),
       {kSquare},
       -2,
       -0.1,
       RENSA_REFERENCE(0.125 * a)},
      {"elu", RENSA_CASE(F::elu(x[0])), {kSquare}, 0.1, 2, RENSA_REFERENCE(a)},
      {"elu of negatives",
       RENSA_CASE(F::elu(x[0], 1.5)),
       {kSquare},
       -2,
       -0.1,
       RENSA_REFERENCE(1.5 * std::expm1(a))},
      {"selu",
       RENSA_CASE(F::selu(x[0])),
       {kSquare},
       0.1,
       2,
       RENSA_REFERENCE(1.0507009873554805 * a)},
      {"selu of negatives",
       RENSA_CASE(F::selu(x[0])),
       {kSquare},
       -2,
       -0.1,
       RENSA_REFERENCE(1.0507009873554805 * (1.6732632423543772 * std::expm1(a)))},
      {"gelu",
       RENSA_CASE(F::gelu(x[0])),
       {kSquare},
       -2,
       2,
       RENSA_REFERENCE(0.5 * a * (1 + std::erf(a / std::sqrt(2.0))))},
      {"silu",
       RENSA_CASE(F::silu(x[0])),
       {kSquare},
       -2,
       2,
       RENSA_REFERENCE(a / (1 + std::exp(-a)))},
      {"hard_sigmoid",
       RENSA_CASE(F::hard_sigmoid(x[0])),
       {kSquare},
       -2,
       2,
       RENSA_REFERENCE(0.2 * a + 0.5)},
      {"hard_sigmoid, saturated",
       RENSA_CASE(F::hard_sigmoid(x[0])),
       {kSquare},
       2.6,
       4,
       RENSA_REFERENCE(1.0)},
      {"clipped_relu", RENSA_CASE(F::clipped_relu(x[0], 3)), {kSquare}, 0.1, 2, RENSA_REFERENCE(a)},
      {"clipped_relu, clipped",
       RENSA_CASE(F::clipped_relu(x[0], 3)),
       {kSquare},
       3.1,
       4,
       RENSA_REFERENCE(3.0)},
      {"relu6 of negatives", RENSA_CASE(F::relu6(x[0])), {kSquare}, -2, -0.1, RENSA_REFERENCE(0.0)},
      // elementwise, two inputs
      {"add", RENSA_CASE(x[0] + x[1]), {kSquare, kSquare}, -2, 2, RENSA_REFERENCE(a + b)},
      {"subtract", RENSA_CASE(x[0] - x[1]), {kSquare, kSquare}, -2, 2, RENSA_REFERENCE(a - b)},
      {"multiply", RENSA_CASE(x[0] * x[1]), {kSquare, kSquare}, -2, 2, RENSA_REFERENCE(a * b)},
      {"divide", RENSA_CASE(x[0] / x[1]), {kSquare, kSquare}, 0.5, 2, RENSA_REFERENCE(a / b)},
      {"maximum",
       RENSA_CASE(F::maximum(x[0], x[1])),
       {kSquare, kSquare},
       -2,
       2,
       RENSA_REFERENCE(std::max(a, b))},
      {"minimum",
       RENSA_CASE(F::minimum(x[0], x[1])),
       {kSquare, kSquare},
       -2,
       2,
       RENSA_REFERENCE(std::min(a, b))},
      {"x * x", RENSA_CASE(x[0] * x[0]), {kSquare}, -2, 2, RENSA_REFERENCE(a * a)},
      // broadcasting
      {"add a row", RENSA_CASE(x[0] + x[1]), {kSquare, {4}}},
      {"multiply by a column", RENSA_CASE(x[0] * x[1]), {{3, 1}, kSquare}},
      {"divide row by column", RENSA_CASE(x[0] / x[1]), {{4}, {3, 1}}, 0.5, 2},
      {"subtract a scalar array", RENSA_CASE(x[0] - x[1]), {{}, kSquare}},
      {"maximum with a row", RENSA_CASE(F::maximum(x[0], x[1])), {kSquare, {4}}},
      {"broadcast_to", RENSA_CASE(F::broadcast_to(x[0], {2, 3, 4})), {{3, 1}}},
      {"sum_to", RENSA_CASE(F::sum_to(x[0], {3, 1})), {{2, 3, 4}}},
      {"where",
       [mask](const Variables& x) -> Variables {
         return {F::where(mask.to(x[0].device()), x[0], x[1])};
       },
       {kSquare, {4}}},
      // reductions
      {"sum", RENSA_CASE(F::sum(x[0])), {kSquare}},
      {"sum axis 0", RENSA_CASE(F::sum(x[0], 0)), {kSquare}},
      {"sum axis -1 keepdims", RENSA_CASE(F::sum(x[0], -1, true)), {kSquare}},
      {"sum two axes", RENSA_CASE(x[0].sum({0, 2})), {{2, 3, 4}}},
      {"mean", RENSA_CASE(F::mean(x[0])), {kSquare}},
      {"mean axis 1", RENSA_CASE(x[0].mean(1)), {kSquare}},
      {"softmax", RENSA_CASE(F::softmax(x[0])), {kSquare}},
      {"log_softmax", RENSA_CASE(F::log_softmax(x[0])), {kSquare}},
      // products
      {"matmul", RENSA_CASE(F::matmul(x[0], x[1])), {{3, 4}, {4, 5}}},
      {"matmul, first transposed", RENSA_CASE(F::matmul(x[0], x[1], true)), {{4, 3}, {4, 5}}},
      {"matmul, second transposed",
       RENSA_CASE(F::matmul(x[0], x[1], false, true)),
       {{3, 4}, {5, 4}}},
      {"matmul, both transposed", RENSA_CASE(F::matmul(x[0], x[1], true, true)), {{4, 3}, {5, 4}}},
      {"matmul, batched", RENSA_CASE(F::matmul(x[0], x[1])), {{2, 3, 4}, {2, 4, 5}}},
      {"matmul, batch broadcast",
       RENSA_CASE(F::matmul(x[0], x[1], true, true)),
       {{2, 4, 3}, {5, 4}}},
      {"matmul, row", RENSA_CASE(F::matmul(x[0], x[1])), {{4}, {4, 5}}},
      {"matmul, column", RENSA_CASE(F::matmul(x[0], x[1])), {{3, 4}, {4}}},
      {"matmul, vectors", RENSA_CASE(F::matmul(x[0], x[1])), {{4}, {4}}},
      {"linear", RENSA_CASE(F::linear(x[0], x[1], x[2])), {{3, 4}, {5, 4}, {5}}},
      {"linear without bias", RENSA_CASE(F::linear(x[0], x[1])), {{3, 4}, {5, 4}}},
      {"linear, flattened", RENSA_CASE(F::linear(x[0], x[1], x[2])), {{3, 2, 2}, {5, 4}, {5}}},
      {"linear, two batch axes",
       RENSA_CASE(F::linear(x[0], x[1], x[2], 2)),
       {{2, 3, 4}, {5, 4}, {5}}},
      // moving values
      {"reshape", RENSA_CASE(F::reshape(x[0], {2, -1})), {kSquare}},
      {"transpose", RENSA_CASE(x[0].T()), {kSquare}},
      {"transpose by axes", RENSA_CASE(F::transpose(x[0], {2, 0, 1})), {{2, 3, 4}}},
      {"get_item, row", RENSA_CASE(x[0][1]), {kSquare}},
      {"get_item, columns",
       RENSA_CASE((x[0][std::initializer_list<BasicIndex>{Slice(), Slice(1, none, 2)}])),
       {kSquare}},
      {"get_item, backwards with a new axis",
       RENSA_CASE(F::get_item(x[0], {newaxis, Slice(none, none, -1), -1})),
       {kSquare}},
      {"concat", RENSA_CASE(F::concat({x[0], x[1], x[0]})), {{3, 2}, {3, 4}}},
      {"concat axis 0", RENSA_CASE(F::concat({x[0], x[1]}, 0)), {{3, 2}, {1, 2}}},
      {"copy", RENSA_CASE(F::copy(x[0], cpu())), {kSquare}},
  };
}

Arrays inputs_of(const Case& c, Device device, Dtype dtype = float64) {
  Arrays inputs;
  for (const Shape& shape : c.shapes) {
    Array x = xp::random::uniform(c.low, c.high, shape, float64, device);
    inputs.push_back(x.astype(dtype));
  }
  return inputs;
}

Variables variables_of(const Arrays& arrays) {
  Variables variables;
  for (const Array& a : arrays) variables.emplace_back(a);
  return variables;
}

class FunctionsTest : public ::testing::Test {
 protected:
  // The same numbers each time, none of them near a kink.
  void SetUp() override { xp::random::seed(3); }
};

TEST_F(FunctionsTest, Values) {
  for (Device device : testing::test_devices()) {
    for (const Case& c : cases()) {
      if (!c.reference) continue;
      SCOPED_TRACE(std::string(c.name) + " on " + device.str());
      Arrays inputs = inputs_of(c, device);
      Array y = c.f(variables_of(inputs))[0].array();
      std::vector<double> got = y.to_vector<double>(), a = inputs[0].to_vector<double>();
      std::vector<double> b = inputs.back().to_vector<double>();
      EXPECT_EQ(y.dtype(), float64);
      ASSERT_EQ(y.shape(), inputs[0].shape());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], c.reference(a[i], b[i]), 1e-12);
      }
    }
  }
}

TEST_F(FunctionsTest, FirstAndSecondDerivatives) {
  for (Device device : testing::test_devices()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(std::string(c.name) + " on " + device.str());
      Arrays inputs = inputs_of(c, device), weights;
      for (const Variable& y : c.f(variables_of(inputs))) {
        weights.push_back(xp::random::uniform(-1, 1, y.shape(), float64, device).to(y.device()));
      }
      EXPECT_NO_THROW(gradient_check::check_backward(c.f, inputs, weights));
      EXPECT_NO_THROW(gradient_check::check_double_backward(c.f, inputs, weights));
    }
  }
}

// Values and gradients of sum(f(x) * w) in `dtype`.
Arrays values_and_gradients(const Case& c, const Arrays& inputs, const Array& weight, Dtype dtype) {
  Variables x;
  for (const Array& a : inputs) x.emplace_back(a.astype(dtype));
  Variable y = c.f(x)[0];
  EXPECT_EQ(y.dtype(), dtype);
  if (y.creator()) {
    y.set_grad(weight.astype(dtype).broadcast_to(y.shape()).to(y.device()));
    y.backward();
  }
  Arrays result{y.array()};
  for (const Variable& v : x) {
    EXPECT_EQ(v.grad().dtype(), dtype);
    EXPECT_EQ(v.grad().shape(), v.shape());
    EXPECT_EQ(v.grad().device(), v.device());
    EXPECT_TRUE(v.grad().is_contiguous());
    result.push_back(v.grad());
  }
  return result;
}

TEST_F(FunctionsTest, OtherDtypes) {
  const std::pair<Dtype, double> tolerances[] = {
      {float32, 1e-5}, {float16, 2e-2}, {bfloat16, 1.5e-1}};
  for (Device device : testing::test_devices()) {
    for (const Case& c : cases()) {
      for (auto [dtype, tolerance] : tolerances) {
        SCOPED_TRACE(std::string(c.name) + " on " + device.str() + " " +
                     std::string(dtype_name(dtype)));
        Arrays inputs = inputs_of(c, device, dtype);
        Array weight = xp::array(0.75, device);
        Arrays expected = values_and_gradients(c, inputs, weight, float64);
        Arrays got = values_and_gradients(c, inputs, weight, dtype);
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_TRUE(xp::allclose(got[i].astype(float64), expected[i], tolerance, tolerance))
              << got[i] << "\n"
              << expected[i];
        }
      }
    }
  }
}

TEST_F(FunctionsTest, StridedInputs) {
  for (Device device : testing::test_devices()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(std::string(c.name) + " on " + device.str());
      Arrays inputs = inputs_of(c, device), strided;
      for (const Array& a : inputs) {  // every second element of every axis of a larger array
        Shape twice = a.shape();
        for (std::int64_t& n : twice) n *= 2;
        Array view = xp::zeros(twice, float64, device);
        ArrayView every_second = view.view();
        every_second.shape = a.shape();
        for (std::int64_t& stride : every_second.strides) stride *= 2;
        view = Array(view.storage(), every_second);
        view.assign(a);
        strided.push_back(view);
      }
      Variables plain = variables_of(inputs), other = variables_of(strided);
      Array y = c.f(plain)[0].array(), z = c.f(other)[0].array();
      EXPECT_TRUE(xp::allclose(y, z, 1e-13, 1e-13));
      EXPECT_NO_THROW(gradient_check::check_backward(c.f, strided));
    }
  }
}

TEST_F(FunctionsTest, EmptyAndZeroDimensional) {
  for (Device device : testing::test_devices()) {
    for (const Case& c : cases()) {
      if (!c.reference) continue;
      for (Shape shape : {Shape{0, 3}, Shape{}}) {
        SCOPED_TRACE(std::string(c.name) + " on " + device.str() + " " + shape.str());
        Case resized = c;
        for (Shape& s : resized.shapes) s = shape;
        Arrays got = values_and_gradients(resized, inputs_of(resized, device),
                                          xp::array(1.0, device), float64);
        EXPECT_EQ(got[0].shape(), shape);
      }
    }
  }
}

TEST_F(FunctionsTest, MixedDtypesPromote) {
  Variable a(xp::ones({2, 3}, float32)), b(xp::full({3}, 2.0, float64));
  Variable y = F::sum(a * b);
  EXPECT_EQ(y.dtype(), float64);
  y.backward();
  EXPECT_EQ(a.grad().dtype(), float32);
  EXPECT_EQ(b.grad().dtype(), float64);
  EXPECT_EQ(b.grad().to_vector<double>(), (std::vector<double>{2, 2, 2}));
}

TEST_F(FunctionsTest, Cast) {
  Variable x(xp::array({1.5f, 2.f}));
  Variable y = F::cast(x, float64);
  EXPECT_EQ(y.dtype(), float64);
  F::sum(y * y).backward();
  EXPECT_EQ(x.grad().dtype(), float32);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST_F(FunctionsTest, TieOfMaximumGoesToTheFirst) {
  Variable a(xp::ones({2})), b(xp::ones({2}));
  F::sum(F::maximum(a, b)).backward();
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST_F(FunctionsTest, ReluKeepsNanAndStopsAtZero) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::array({-1.f, 0.f, 2.f, std::nanf("")}, device));
    Variable y = F::relu(x);
    std::vector<float> values = y.array().to_vector<float>();
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(values[2], 2);
    EXPECT_TRUE(std::isnan(values[3]));
    y.set_grad(xp::full({4}, 5.f, float32, device));
    y.backward();
    EXPECT_EQ(x.grad()[Slice(0, 3)].to_vector<float>(), (std::vector<float>{0, 0, 5}));
  }
}

TEST_F(FunctionsTest, CopyGoesToTheOtherDeviceAndBack) {
  RENSA_NEEDS_GPUS(1);
  Variable x(xp::array({1.0, 2.0}));
  Variable y = F::copy(x, gpu(0));
  EXPECT_EQ(y.device(), gpu(0));
  F::sum(y * y * y).backward({.enable_double_backprop = true});
  EXPECT_EQ(x.grad().device(), cpu());
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{3, 12}));
  Variable gx = x.grad_var();
  x.cleargrad();
  F::sum(gx).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{6, 12}));
  auto f = [](const Variables& v) { return Variables{F::square(F::copy(v[0], gpu(0)))}; };
  EXPECT_NO_THROW(gradient_check::check_double_backward(f, {xp::array({1.0, 2.0})},
                                                        {xp::array({1.0, 1.0}, gpu(0))}));
}

// A network of the model's own takes its labels along.
TEST_F(FunctionsTest, IntegerLabelsAreCopied) {
  Device there = testing::test_devices().back();
  for (Dtype dtype : {int32, int64}) {
    Variable t(xp::array({2, 0}, cpu()).astype(dtype), false);
    Variable copy = F::copy(t, there);
    EXPECT_EQ(copy.device(), there);
    EXPECT_EQ(copy.dtype(), dtype);
    EXPECT_EQ(copy.array().to_vector<std::int64_t>(), (std::vector<std::int64_t>{2, 0}));
    Variable x(xp::array({{1.f, 2.f, 3.f}, {3.f, 2.f, 1.f}}, cpu()));
    Variable loss = F::copy(F::softmax_cross_entropy(F::copy(x, there), copy), cpu());
    loss.backward();
    EXPECT_EQ(x.grad().device(), cpu());
    EXPECT_NEAR(loss.item<float>(), 0.4076059f, 1e-6);
  }
}

TEST_F(FunctionsTest, CopyBetweenGpus) {
  RENSA_NEEDS_GPUS(2);
  Variable x(xp::array({1.f, 2.f}, gpu(0)));
  Variable y = F::copy(x, gpu(1));
  F::sum(y * y).backward();
  EXPECT_EQ(x.grad().device(), gpu(0));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST_F(FunctionsTest, BadInputIsNamed) {
  Variable a(xp::ones({2, 3})), b(xp::ones({4}));
  EXPECT_THROW(a + b, ShapeError);
  EXPECT_THROW(F::matmul(a, b), ShapeError);
  EXPECT_THROW(F::reshape(a, {4}), ShapeError);
  EXPECT_THROW(F::sum(a, 2), IndexError);
  EXPECT_THROW(F::concat({}), ValueError);
  EXPECT_THROW(a[5], IndexError);
}

}  // namespace
}  // namespace rensa

// softmax_cross_entropy and accuracy.
#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/gradient_check.h"
#include "rensa/core/error.h"
#include "rensa/device/stream.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

constexpr double kScores[3][4] = {{1, -2, 0.5, 0}, {3, 3, -1, 2}, {-1, 0, 100, 1}};

Array scores(Device device, Dtype dtype) {
  std::vector<double> flat(&kScores[0][0], &kScores[0][0] + 12);
  return xp::array(flat, device).reshape({3, 4}).astype(dtype);
}

/// -log softmax(row)[label].
double cross_entropy(const double (&row)[4], int label) {
  double greatest = *std::max_element(row, row + 4), total = 0;
  for (double x : row) total += std::exp(x - greatest);
  return std::log(total) + greatest - row[label];
}

TEST(SoftmaxCrossEntropy, Values) {
  const std::pair<Dtype, double> tolerances[] = {
      {float64, 1e-12}, {float32, 1e-5}, {float16, 2e-2}, {bfloat16, 2e-1}};
  for (Device device : testing::test_devices()) {
    for (auto [dtype, tolerance] : tolerances) {
      for (Dtype label_dtype : {int32, int64, uint8}) {
        Variable x(scores(device, dtype));
        Array t = xp::array({2, 0, 2}, device).astype(label_dtype);
        double expected = (cross_entropy(kScores[0], 2) + cross_entropy(kScores[1], 0) +
                           cross_entropy(kScores[2], 2)) /
                          3;
        Variable loss = F::softmax_cross_entropy(x, t);
        EXPECT_EQ(loss.dtype(), dtype);
        EXPECT_EQ(loss.ndim(), 0);
        EXPECT_NEAR(loss.item<double>(), expected, tolerance) << device.str();
        loss.backward();
        EXPECT_EQ(x.grad().dtype(), dtype);
        EXPECT_NEAR(x.grad().sum().item<double>(), 0, tolerance);
      }
    }
  }
}

TEST(SoftmaxCrossEntropy, IgnoredLabelsAndNormalization) {
  for (Device device : testing::test_devices()) {
    Variable x(scores(device, float64));
    Array t = xp::array({-1, 0, -1}, device);
    double one = cross_entropy(kScores[1], 0);
    Variable loss = F::softmax_cross_entropy(x, t);
    EXPECT_NEAR(loss.item<double>(), one, 1e-12);
    loss.backward();
    EXPECT_EQ(x.grad()[0].to_vector<double>(), std::vector<double>(4, 0));
    EXPECT_NE(x.grad()[1].to_vector<double>(), std::vector<double>(4, 0));
    loss = F::softmax_cross_entropy(x, t, {.normalize = false});
    EXPECT_NEAR(loss.item<double>(), one / 3, 1e-12);
    Array u = xp::array({2, 0, 2}, device);
    loss = F::softmax_cross_entropy(x, u, {.ignore_label = 2});
    EXPECT_NEAR(loss.item<double>(), one, 1e-12);
    Array all_ignored = xp::array({-1, -1, -1}, device);
    EXPECT_EQ(F::softmax_cross_entropy(x, all_ignored).item<double>(), 0);
  }
}

TEST(SoftmaxCrossEntropy, Derivatives) {
  for (Device device : testing::test_devices()) {
    for (bool normalize : {true, false}) {
      Array t = xp::array({2, -1, 1}, device);
      auto f = [&](const Variables& x) {
        return Variables{F::softmax_cross_entropy(x[0], t, {.normalize = normalize})};
      };
      Array x = xp::random::uniform(-2, 2, {3, 4}, float64, device);
      Array weight = xp::array(0.7, device);
      EXPECT_NO_THROW(gradient_check::check_backward(f, {x}, {weight}));
      EXPECT_NO_THROW(gradient_check::check_double_backward(f, {x}, {weight}));
      // Recorded for a second derivative or not: the same first one.
      Variable v(x), loss = f({v})[0];
      Array plain = grad({loss}, {v})[0].array(), recorded = grad({loss}, {v}, {}, true)[0].array();
      EXPECT_TRUE(xp::allclose(plain, recorded, 1e-12, 1e-12));
    }
  }
}

// Each gradient is what float64 gives, rounded once.
TEST(SoftmaxCrossEntropy, OfHalfTypesIsComputedInFloat32) {
  for (Device device : testing::test_devices()) {
    for (auto [dtype, rounding] : {std::pair{bfloat16, 0x1p-8}, {float16, 0x1p-11}}) {
      Array x = xp::random::uniform(-12, 12, {5, 40}, float32, device).astype(dtype);
      Array t = xp::arange(5, int32, device);
      Variable half(x), exact(x.astype(float64));
      Variable loss = F::softmax_cross_entropy(half, constant(t));
      loss.backward();
      Variable want = F::softmax_cross_entropy(exact, constant(t));
      want.backward();
      EXPECT_NEAR(loss.item<double>(), want.item<double>(), rounding * want.item<double>());
      // What is below float16's normal numbers has fewer digits.
      double least = dtype == float16 ? 0x1p-25 : 0;
      Array got = half.grad().astype(float64);
      EXPECT_TRUE(xp::allclose(got, exact.grad(), 1.1 * rounding, least))
          << got.str() << ", not " << exact.grad().str();
    }
  }
}

TEST(SoftmaxCrossEntropy, StridedInputs) {
  for (Device device : testing::test_devices()) {
    Array x = scores(device, float64), t = xp::array({2, 9, 0, 9, 2, 9}, device);
    Array turned = x.T().copy().T(), every_second = t[Slice(none, none, 2)];
    EXPECT_EQ(F::softmax_cross_entropy(turned, every_second).item<double>(),
              F::softmax_cross_entropy(x, xp::array({2, 0, 2}, device)).item<double>());
  }
}

TEST(SoftmaxCrossEntropy, LabelOutOfRange) {
  for (Device device : testing::test_devices()) {
    Variable x(scores(device, float32));
    for (int label : {4, -2}) {
      Array t = xp::array({0, label, 0}, device);
      try {
        F::softmax_cross_entropy(x, t).item<float>();
        FAIL() << "no error for label " << label;
      } catch (const IndexError& e) {
        EXPECT_NE(std::string(e.what()).find("softmax_cross_entropy"), std::string::npos)
            << e.what();
      }
    }
    Variable fine = F::softmax_cross_entropy(x, xp::array({0, 1, 2}, device));
    EXPECT_FALSE(std::isnan(fine.item<float>()));
  }
}

TEST(Accuracy, Values) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float64, float32, float16}) {
      Array y = scores(device, dtype);  // greatest: 0, 0 (the first of two), 2
      EXPECT_EQ(F::accuracy(y, xp::array({0, 0, 2}, device)).item<double>(), 1);
      EXPECT_NEAR(F::accuracy(y, xp::array({0, 1, 2}, device)).item<double>(), 2. / 3, 1e-3);
      Variable a = F::accuracy(y, xp::array({0, -1, 3}, device), -1);
      EXPECT_EQ(a.item<double>(), 0.5);
      EXPECT_EQ(a.dtype(), dtype);
      EXPECT_FALSE(a.requires_grad());
    }
  }
}

TEST(Classification, BadInputIsNamed) {
  Variable x(xp::ones({3, 4}));
  EXPECT_THROW(F::softmax_cross_entropy(x, xp::array({1, 2})), ShapeError);
  EXPECT_THROW(F::softmax_cross_entropy(x, xp::ones({3})), DtypeError);
  EXPECT_THROW(F::softmax_cross_entropy(xp::ones({3}), xp::array({1, 2, 3})), ShapeError);
  EXPECT_THROW(F::softmax_cross_entropy(xp::ones({3, 4}, int32), xp::array({1, 2, 3})), DtypeError);
  EXPECT_THROW(F::accuracy(x, xp::array({1, 2})), ShapeError);
  EXPECT_THROW(F::accuracy(x, xp::ones({3})), DtypeError);
}

TEST(Classification, ArraysOfTwoDevices) {
  RENSA_NEEDS_GPUS(1);
  EXPECT_THROW(F::softmax_cross_entropy(xp::ones({3, 4}, float32, gpu(0)), xp::array({1, 2, 3})),
               DeviceError);
}

TEST(Linear, BadInputIsNamed) {
  Variable x(xp::ones({100, 784})), w(xp::ones({1000, 785})), b(xp::ones({1000}));
  try {
    F::linear(x, w, b);
    FAIL();
  } catch (const ShapeError& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("linear: x"), std::string::npos) << text;
    EXPECT_NE(text.find("(100, 784) float32"), std::string::npos) << text;
    EXPECT_NE(text.find("(1000, 785) float32"), std::string::npos) << text;
  }
  Variable fit(xp::ones({1000, 784}));
  EXPECT_THROW(F::linear(x, fit, Variable(xp::ones({999}))), ShapeError);
  EXPECT_THROW(F::linear(F::cast(x, float64), fit, b), DtypeError);
  EXPECT_THROW(F::linear(xp::ones({100, 784}, int64), fit, b), DtypeError);
  EXPECT_THROW(F::linear(x, fit, b, 0), ValueError);
  EXPECT_THROW(F::linear(x, fit, b, 3), ValueError);
}

}  // namespace
}  // namespace rensa

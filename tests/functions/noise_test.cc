// Functions that draw: their distributions, and what they draw anew or again.
#include "rensa/functions/noise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/array/statistics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Dropout, KeepsOrZeroes) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float64, float32, float16}) {
      xp::random::seed(5);
      Variable x(xp::ones({200, 50}, dtype, device));
      Variable y = F::dropout(x, 0.2);
      std::vector<double> values = y.array().to_vector<double>();
      std::size_t kept = 0;
      for (double v : values) {
        if (v == 0) continue;
        ++kept;
        EXPECT_NEAR(v, 1 / 0.8, 1e-3);
      }
      // 10000 draws: five standard deviations are 200.
      EXPECT_NEAR(static_cast<double>(kept), 8000, 200);
      y.set_grad(xp::full({200, 50}, 3.0, dtype, device));
      y.backward();
      EXPECT_TRUE(xp::array_equal(x.grad(), y.array() * 3));  // the same mask
    }
  }
}

TEST(Dropout, CpuAndGpuDrawTheSameMask) {
  RENSA_NEEDS_GPUS(1);
  Array x = xp::ones({33, 7});
  xp::random::seed(5);
  Array on_cpu = F::dropout(x).array(), on_gpu = F::dropout(x.to(gpu(0))).array();
  EXPECT_EQ(on_cpu.to_vector<float>(), on_gpu.to_vector<float>());
}

TEST(Dropout, CpuAndGpuDivideAlike) {
  RENSA_NEEDS_GPUS(1);
  // Numbers of every size, those that a GPU divides by the instruction for rare ones among them.
  std::vector<float> numbers = {0.f, -0.f, INFINITY, -INFINITY};
  for (int i = 0; i < 16383; ++i) {
    float significand = 1 + static_cast<float>(i % 1021) / 1021;
    numbers.push_back(
        std::ldexp(i % 3 == 0 ? -significand : significand, i % 5 ? 0 : i % 253 - 126));
  }
  for (Dtype dtype : {float64, float32, float16, bfloat16}) {
    for (int skipped : {0, 1, 4}) {  // aligned and not, and a last vector that is there in part
      for (double ratio : {0.1, 0.5, 0.7}) {
        Array x = xp::array(numbers).astype(dtype)[Slice(skipped, none)];
        xp::random::seed(5);
        auto on_cpu = F::dropout(x, ratio).array().to_vector<double>();
        Array moved = xp::array(numbers).astype(dtype).to(gpu(0))[Slice(skipped, none)];
        auto on_gpu = F::dropout(moved, ratio).array().to_vector<double>();
        ASSERT_EQ(on_cpu, on_gpu) << dtype << ", ratio " << ratio << ", skipped " << skipped;
        for (std::size_t i = 0; i < on_cpu.size(); ++i) {
          ASSERT_EQ(std::signbit(on_cpu[i]), std::signbit(on_gpu[i])) << i;
        }
      }
    }
  }
}

TEST(Dropout, EachCallDrawsAnew) {
  xp::random::seed(5);
  Array x = xp::ones({100});
  Array first = F::dropout(x).array(), second = F::dropout(x).array();
  EXPECT_FALSE(xp::array_equal(first, second));
  xp::random::seed(5);
  EXPECT_TRUE(xp::array_equal(F::dropout(x).array(), first));
}

TEST(Dropout, SecondDerivativeHasTheSameMask) {
  Variable x(xp::random::uniform(1, 2, {50}, float64));
  Variable y = F::dropout(x);
  Variable gx = grad({F::sum(y * y)}, {x}, {}, true)[0];  // 2 m^2 x
  Variable ggx = grad({F::sum(gx)}, {x})[0];              // 2 m^2
  EXPECT_TRUE(xp::allclose(ggx.array() * x.array(), gx.array(), 1e-12));
}

TEST(Dropout, StridedEmptyAndIdle) {
  Variable x(xp::ones({3, 4}).T());
  EXPECT_EQ(F::dropout(x).shape(), (Shape{4, 3}));
  EXPECT_EQ(F::dropout(Variable(xp::ones({0, 3}))).shape(), (Shape{0, 3}));
  EXPECT_EQ(F::dropout(x, 0).array().storage(), x.array().storage());
  UsingConfig<bool> testing(&Config::train, false);
  EXPECT_EQ(F::dropout(x).array().storage(), x.array().storage());
}

TEST(Dropout, BadInput) {
  Variable x(xp::ones({3}));
  EXPECT_THROW(F::dropout(x, 1), ValueError);
  EXPECT_THROW(F::dropout(x, -0.1), ValueError);
  EXPECT_THROW(F::dropout(xp::array({1, 2})), DtypeError);
}

TEST(Gaussian, DrawsOfThatMeanAndVariance) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(5);
    Array mean = xp::full({20000}, 3.f, float32, device), ln_var = xp::full_like(mean, 1.f), eps;
    Array y = F::gaussian(mean, ln_var, {.return_eps = &eps}).array();
    EXPECT_NEAR(xp::mean(y).item<float>(), 3, 0.06);
    EXPECT_NEAR(xp::var(y).item<float>(), std::exp(1), 0.15);
    EXPECT_TRUE(xp::array_equal(F::gaussian(mean, ln_var, {.eps = eps}).array(), y));
    EXPECT_FALSE(xp::array_equal(F::gaussian(mean, ln_var).array(), y));
    EXPECT_THROW(F::gaussian(mean, xp::ones({3}, float32, device)), ShapeError);
    EXPECT_THROW(F::gaussian(mean, ln_var, {.eps = xp::ones({3}, float32, device)}), ShapeError);
  }
}

TEST(GumbelSoftmax, TakesClassesByTheirProbabilities) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(5);
    Array log_pi = xp::log(xp::array({0.1f, 0.6f, 0.3f}, device));
    Variable x(xp::broadcast_to(log_pi, {20000, 3}).copy());
    Variable y = F::gumbel_softmax(x, 0.01);
    std::vector<float> shares = xp::mean(y.array(), 0).to_vector<float>();
    EXPECT_NEAR(shares[0], 0.1, 0.015);
    EXPECT_NEAR(shares[1], 0.6, 0.02);
    EXPECT_NEAR(shares[2], 0.3, 0.02);
    F::sum(F::square(F::gumbel_softmax(x, 1))).backward();
    EXPECT_GT(xp::max(xp::absolute(x.grad())).item<float>(), 0);
    EXPECT_THROW(F::gumbel_softmax(x, 0), ValueError);
  }
}

TEST(Zoneout, MixesTheTwo) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(5);
    Variable h(xp::zeros({10000}, float32, device)), x(xp::ones({10000}, float32, device));
    Variable y = F::zoneout(h, x, 0.2);
    EXPECT_NEAR(xp::mean(y.array()).item<float>(), 0.8, 0.02);
    y.set_grad(xp::full({10000}, 2.f, float32, device));
    y.backward();
    EXPECT_TRUE(xp::array_equal(x.grad(), y.array() * 2));
    EXPECT_TRUE(xp::array_equal(h.grad(), 2 - y.array() * 2));
    EXPECT_THROW(F::zoneout(h, x, 1.5), ValueError);
    EXPECT_THROW(F::zoneout(h, xp::ones({3}, float32, device)), ShapeError);
    UsingConfig<bool> testing(&Config::train, false);
    EXPECT_TRUE(xp::array_equal(F::zoneout(h, x, 0.2).array(), x.array()));
  }
}

TEST(SimplifiedDropconnect, DropsWeights) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(5);
    Variable x(xp::ones({50, 8}, float32, device)), W(xp::ones({40, 8}, float32, device));
    Variable b(xp::full({40}, 10.f, float32, device));
    for (bool batchwise : {true, false}) {
      Array y = F::simplified_dropconnect(x, W, b, {.ratio = 0.25, .use_batchwise_mask = batchwise})
                    .array();
      EXPECT_EQ(y.shape(), (Shape{50, 40}));
      EXPECT_NEAR(xp::mean(y).item<float>(), 18, batchwise ? 0.2 : 0.5);
      EXPECT_GT(xp::max(y).item<float>(), 18);
      EXPECT_EQ(xp::array_equal(y[0], y[1]), !batchwise);
    }
    Array all = F::simplified_dropconnect(x, W, b, {.train = false}).array();
    EXPECT_TRUE(xp::array_equal(all, xp::full({50, 40}, 18.f, float32, device)));
    EXPECT_THROW(F::simplified_dropconnect(x, W, b, {.ratio = 1}), ValueError);
    EXPECT_THROW(F::simplified_dropconnect(x, b), ShapeError);
    Array mask = xp::ones({8, 40}, float32, device);
    EXPECT_THROW(F::simplified_dropconnect(x, W, b, {.mask = mask}), ShapeError);
  }
}

}  // namespace
}  // namespace rensa

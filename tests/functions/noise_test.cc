// dropout.
#include "rensa/functions/noise.h"

#include <gtest/gtest.h>

#include "rensa/array/random_basics.h"
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

}  // namespace
}  // namespace rensa

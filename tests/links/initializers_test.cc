// Initializers: the spread of what they draw.
#include "rensa/links/initializers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct Case {
  const char* name;
  Initializer initializer;
  double deviation;  // of shape (400, 50, 2): fan_in 100, fan_out 800
  double bound;      // no element is farther from 0; 0 for none
};

const double kUniform = 1 / std::sqrt(3);  // the deviation of U[-1, 1)

std::vector<Case> cases() {
  using namespace initializers;
  auto uniform = [](const char* name, Initializer i, double bound) {
    return Case{name, std::move(i), bound * kUniform, bound};
  };
  return {
      {"Normal", Normal{}, 0.05, 0},
      uniform("Uniform", Uniform{0.5}, 0.5),
      {"LeCunNormal", LeCunNormal{}, std::sqrt(1 / 100.), 0},
      {"LeCunNormal, scaled", LeCunNormal{3}, 3 * std::sqrt(1 / 100.), 0},
      uniform("LeCunUniform", LeCunUniform{}, std::sqrt(3 / 100.)),
      {"GlorotNormal", GlorotNormal{}, std::sqrt(2 / 900.), 0},
      uniform("GlorotUniform", GlorotUniform{}, std::sqrt(6 / 900.)),
      {"HeNormal", HeNormal{}, std::sqrt(2 / 100.), 0},
      uniform("HeUniform", HeUniform{}, std::sqrt(6 / 100.)),
  };
}

TEST(Initializers, Spread) {
  xp::random::seed(1);
  for (Device device : testing::test_devices()) {
    for (const Case& c : cases()) {
      for (Dtype dtype : {float64, float32, float16}) {
        SCOPED_TRACE(std::string(c.name) + " " + device.str());
        Array out = xp::full({400, 50, 2}, 1e4, dtype, device);
        c.initializer(out);
        Array drawn = out.astype(float64);
        double mean = drawn.mean().item<double>();
        double deviation = std::sqrt((drawn * drawn).mean().item<double>());
        EXPECT_NEAR(mean, 0, 5 * c.deviation / std::sqrt(40000.));
        EXPECT_NEAR(deviation, c.deviation, 0.03 * c.deviation);
        if (c.bound > 0) {
          EXPECT_LE(xp::absolute(drawn).max().item<double>(), c.bound * 1.001);
        }
      }
    }
  }
}

TEST(Initializers, Constant) {
  Array out = xp::empty({3});
  initializers::Constant{2.5}(out);
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(3, 2.5));
}

TEST(Initializers, FansNeedTwoAxes) {
  EXPECT_THROW(initializers::LeCunNormal{}(xp::empty({3})), ShapeError);
}

}  // namespace
}  // namespace rensa

// Initializers: the spread of what they draw.
#include "rensa/links/initializers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "tests/optional_parts.h"
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
      {"HeNormal, fan_out", HeNormal{.fan_option = "fan_out"}, std::sqrt(2 / 800.), 0},
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

TEST(Initializers, OneValue) {
  auto filled = [](const Initializer& initializer) {
    Array out = xp::full({2}, 7.0);
    initializer(out);
    return out.to_vector<float>();
  };
  EXPECT_EQ(filled(initializers::Zero()), (std::vector<float>{0, 0}));
  EXPECT_EQ(filled(initializers::One()), (std::vector<float>{1, 1}));
  for (float value : filled(initializers::NaN())) EXPECT_TRUE(std::isnan(value));
}

TEST(Initializers, Identity) {
  for (Device device : testing::test_devices()) {
    Array out = xp::full({3, 3}, 7.0, float32, device);
    initializers::Identity{2}(out);
    EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{2, 0, 0, 0, 2, 0, 0, 0, 2}));
    EXPECT_THROW(initializers::Identity()(xp::empty({2, 3})), ShapeError);
    EXPECT_THROW(initializers::Identity()(xp::empty({2, 2, 2})), ShapeError);
  }
}

TEST(Initializers, OrthogonalSystems) {
  xp::random::seed(1);
  for (Device device : testing::linalg_devices()) {
    for (const Shape& shape :
         {Shape{4, 6}, Shape{6, 4}, Shape{5, 5}, Shape{4, 2, 3}, Shape{1, 3}}) {
      for (Dtype dtype : {float64, float32, float16}) {
        Array out = xp::empty(shape, dtype, device);
        initializers::Orthogonal{2}(out);
        std::int64_t rows = shape[0], columns = shape.total() / rows;
        Array matrix = out.astype(float64).reshape({rows, columns});
        Array gram = rows < columns ? xp::matmul(matrix, matrix.transpose())
                                    : xp::matmul(matrix.transpose(), matrix);
        Array expected = xp::eye(std::min(rows, columns), float64, device) * 4;
        double far = xp::absolute(gram - expected).max().item<double>();
        EXPECT_LT(far, dtype == float64   ? 1e-12
                       : dtype == float32 ? 1e-5
                                          : 2e-2)
            << shape.str() << " on " << device.str();
      }
    }
    Array number = xp::empty({}, float32, device);
    initializers::Orthogonal()(number);
    EXPECT_NEAR(std::abs(number.item<float>()), 1.1, 1e-6);
  }
}

// R's diagonal is positive: of a 1 x 1 parameter the sign is that of the number drawn.
TEST(Initializers, OrthogonalHasNoPreferredSign) {
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  xp::random::seed(1);
  int positive = 0;
  for (int i = 0; i < 40; ++i) {
    Array out = xp::empty({1, 1});
    initializers::Orthogonal{1}(out);
    positive += out.item<float>() > 0;
  }
  EXPECT_GT(positive, 8);
  EXPECT_LT(positive, 32);
}

TEST(Initializers, OrthogonalOfShapesThatAModeForbids) {
  struct {
    const char* mode;
    bool wide, tall;
  } const modes[] = {{"auto", true, true},
                     {"projection", true, false},
                     {"embedding", false, true},
                     {"basis", false, false}};
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  for (auto [mode, wide, tall] : modes) {
    initializers::Orthogonal init{1, mode};
    auto works = [&](const Shape& shape) {
      try {
        init(xp::empty(shape));
        return true;
      } catch (const ShapeError&) {
        return false;
      }
    };
    EXPECT_EQ(works({2, 3}), wide) << mode;
    EXPECT_EQ(works({3, 2}), tall) << mode;
    EXPECT_TRUE(works({3, 3})) << mode;
  }
  EXPECT_THROW((initializers::Orthogonal{1, "all"}(xp::empty({2, 2}))), ValueError);
  EXPECT_THROW(initializers::Orthogonal()(xp::empty({0, 2})), ShapeError);
}

// Chainer's numbers.
TEST(Initializers, SamplingFilters) {
  using Values = std::vector<float>;
  const Values square = {1, 2, 1, 2, 4, 2, 1, 2, 1}, none(9, 0);
  for (Device device : testing::test_devices()) {
    auto filled = [&](const Initializer& initializer, const Shape& shape) {
      Array out = xp::full(shape, 7.0, float32, device);
      initializer(out);
      return out.to_vector<float>();
    };
    auto join = [](Values a, const Values& b, float scale) {
      a.insert(a.end(), b.begin(), b.end());
      for (float& value : a) value *= scale;
      return a;
    };
    initializers::UpsamplingDeconvFilter up;
    initializers::DownsamplingConvFilter down;
    EXPECT_EQ(filled(up, {1, 1, 4}), (Values{0.25, 0.75, 0.75, 0.25}));
    EXPECT_EQ(filled(down, {1, 1, 4}), (Values{0.125, 0.375, 0.375, 0.125}));
    Values two = join(join(square, none, 1), join(none, square, 1), 1);
    EXPECT_EQ(filled(up, {2, 2, 3, 3}), join(two, {}, 0.25));
    EXPECT_EQ(filled(down, {2, 2, 3, 3}), join(two, {}, 0.0625));
    EXPECT_EQ(filled(up, {2, 1, 3, 3}), join(square, square, 0.25));
  }
  for (const Shape& shape : {Shape{2, 3, 3, 3}, Shape{2, 2, 3, 4}, Shape{2, 2}, Shape{2, 2, 0}}) {
    EXPECT_THROW(initializers::UpsamplingDeconvFilter()(xp::empty(shape)), ShapeError)
        << shape.str();
  }
  EXPECT_THROW(initializers::UpsamplingDeconvFilter{"cubic"}(xp::empty({1, 1, 2})), ValueError);
}

TEST(Initializers, FansNeedTwoAxes) {
  EXPECT_THROW(initializers::LeCunNormal{}(xp::empty({3})), ShapeError);
  EXPECT_THROW((initializers::HeNormal{1, "fan"}(xp::empty({3, 2}))), ValueError);
}

}  // namespace
}  // namespace rensa

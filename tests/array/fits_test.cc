// What polynomials and random numbers make of linear algebra: fits, roots, correlated normals.
#include <gmock/gmock.h>

#include <algorithm>

#include "rensa/array/random.h"
#include "tests/array/arrays.h"
#include "tests/optional_parts.h"

namespace rensa {
namespace {

using testing::Closeness;
using testing::matches;

TEST(Polyfit, FindsTheCoefficients) {
  for (Device device : testing::linalg_devices()) {
    Array x = xp::linspace(-2, 3, 30, float64, device),
          p = xp::array({2.0, -1.0, 0.5, 7.0}, device);
    Array fit = xp::polyfit(x, xp::polyval(p, x), 3);
    EXPECT_TRUE(matches(fit.to(cpu()), p.to(cpu()), {1e-10, 1e-10}));
    Array both = xp::stack({xp::polyval(p, x), 3 * x}, 1);
    Array fits = xp::polyfit(x, both, 3);
    EXPECT_EQ(fits.shape(), Shape({4, 2}));
    EXPECT_NEAR((fits[{2, 1}].item<double>()), 3, 1e-9);
    // numpy.polyfit([0, 1, 2, 3], [1, 3, 2, 5], 1)
    Array line = xp::polyfit(xp::arange(4, int64, device), xp::array({1, 3, 2, 5}, device), 1);
    EXPECT_NEAR(line[0].item<double>(), 1.1, 1e-12);
    EXPECT_NEAR(line[1].item<double>(), 1.1, 1e-12);
    EXPECT_EQ(xp::polyfit(x.astype(float32), x.astype(float32), 1).dtype(), float64);  // as NumPy
    EXPECT_THAT(testing::thrown<ShapeError>([&] { xp::polyfit(x, x[Slice(3)], 1); }),
                ::testing::HasSubstr("polyfit"));
  }
}

TEST(Roots, OfProductsOfFactors) {
  for (Device device : testing::linalg_devices()) {
    // 0 x^5 + (x - 1)(x - 2)(x + 3) x
    Array p = xp::array({0.0, 1.0, 0.0, -7.0, 6.0, 0.0}, device), roots;
    try {
      roots = xp::roots(p).to(cpu());
    } catch (const NotImplementedError& error) {
      ASSERT_TRUE(device.is_cuda()) << error.what();  // an older cuSOLVER
      continue;
    }
    EXPECT_EQ(roots.dtype(), complex128);
    std::vector<double> found;
    for (auto root : roots.to_vector<std::complex<double>>()) {
      EXPECT_NEAR(root.imag(), 0, 1e-9);
      found.push_back(root.real());
    }
    EXPECT_EQ(found.back(), 0);  // exactly: it is split off
    std::sort(found.begin(), found.end());
    EXPECT_THAT(
        found, ::testing::Pointwise(::testing::DoubleNear(1e-9), std::vector<double>{-3, 0, 1, 2}));
    EXPECT_EQ(xp::roots(xp::array({0.0, 3.0}, device)).size(), 0);
  }
}

TEST(MultivariateNormal, HasItsMeanAndCovariance) {
  Array cov = xp::array({{2.0, 0.6, 0.0}, {0.6, 1.0, 0.0}, {0.0, 0.0, 0.0}});  // of rank 2
  Array mean = xp::array({1.0, -2.0, 5.0});
  for (Device device : testing::linalg_devices()) {
    auto g = xp::random::default_rng(4, device);
    Array v = g.multivariate_normal(mean.to(device), cov.to(device), {200, 1000}, float64);
    EXPECT_EQ(v.shape(), Shape({200, 1000, 3}));
    Array flat = v.reshape({-1, 3});
    EXPECT_TRUE(matches(flat.mean(0).to(cpu()), mean, {0, 0.02}));
    EXPECT_TRUE(matches(xp::cov(flat.T()).to(cpu()), cov, {0, 0.03}));
    EXPECT_THAT(testing::thrown<ShapeError>(
                    [&] { g.multivariate_normal(mean.to(device)[Slice(2)], cov.to(device)); }),
                ::testing::HasSubstr("multivariate_normal"));
    Array indefinite = xp::array({{1.0, 0.0}, {0.0, -1.0}}, device),
          none = xp::zeros({2}, float64, device);
    EXPECT_THAT(testing::thrown<ValueError>([&] { g.multivariate_normal(none, indefinite); }),
                ::testing::HasSubstr("eigenvalue -1"));
  }
}

}  // namespace
}  // namespace rensa

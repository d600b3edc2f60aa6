// Routines made of others: differences, covariance, convolution, interpolation, windows,
// polynomials and functions of slices; against NumPy and by hand.
#include <numbers>

#include "rensa/array/ufuncs/trigonometric.h"
#include "tests/array/replay.h"

namespace rensa {
namespace {

using testing::Call;
using testing::Closeness;
using testing::Routines;
using testing::test_devices;
using testing::thrown;
using testing::tolerance;

std::vector<Array> one(Array a) { return {std::move(a)}; }

int small(const Call& c, const char* key, std::int64_t otherwise = 0) {
  return static_cast<int>(c.integer(key, otherwise));
}

Array operand(const Call& c, std::size_t i) { return c.in.size() > i ? c.in[i] : Array(); }

xp::CovOptions cov_options(const Call& c) {
  xp::CovOptions options;
  if (c.has("rowvar")) options.rowvar = c.flag("rowvar");
  options.bias = c.flag("bias");
  if (c.has("ddof")) options.ddof = small(c, "ddof");
  if (c.has("dtype")) options.dtype = parse_dtype(c.text("dtype"));
  return options;
}

Array weighted_cov(const Call& c) {
  xp::CovOptions options = cov_options(c);
  const std::string& kind = c.text("kind");
  if (kind[0] == 'f') options.fweights = c.in[1];
  if (kind.back() == 'a') options.aweights = c.in.back();
  return xp::cov(c.in[0], {}, options);
}

Array pieces(const Call& c) {
  if (c.in.size() == 3) return xp::piecewise(c.in[0], {c.in[1], c.in[2]}, {1, 2});
  static const auto twice = [](const Array& x) { return x + x; };
  return xp::piecewise(c.in[0], {c.in[1]}, {twice, 1});
}

std::vector<Array> polynomials(const Call& c) {
  xp::poly1d a(c.in[0]), b(c.in[1]);
  return {(a + b).c(),    (a - b).c(), (a * b).c(), b(a).c(), b.deriv().c(),
          b.integ(2).c(), (-a).c(),    a[0],        a[9],     b(xp::arange(3, c.device))};
}

#define RENSA_ROUTINE(name, ...) \
  Routines::value_type(#name, [](const Call& c) { return one(__VA_ARGS__); })
#define RENSA_ROUTINES(name, ...) \
  Routines::value_type(#name, [](const Call& c) { return __VA_ARGS__; })

Routines calculus() {
  return {
      RENSA_ROUTINE(diff, xp::diff(c.in[0], small(c, "n"), c.axis())),
      RENSA_ROUTINE(diff_ends, xp::diff(c.in[0], 1, c.axis(), c.in[1], c.in[2])),
      RENSA_ROUTINE(ediff1d, xp::ediff1d(c.in[0])),
      RENSA_ROUTINE(ediff1d_ends, xp::ediff1d(c.in[0], c.in[1], c.in[2])),
      RENSA_ROUTINES(gradient, xp::gradient(c.in[0], {}, {.edge_order = small(c, "order")})),
      RENSA_ROUTINES(gradient_even,
                     xp::gradient(c.in[0], {c.real("h")}, {.edge_order = small(c, "order")})),
      RENSA_ROUTINES(gradient_uneven, xp::gradient(c.in[0], {c.in[1]},
                                                   {.axis = -1, .edge_order = small(c, "order")})),
      RENSA_ROUTINE(trapezoid, xp::trapezoid(c.in[0], c.real("dx"), c.axis())),
      RENSA_ROUTINE(trapezoid_x, xp::trapezoid(c.in[0], c.in[1], c.axis())),
      RENSA_ROUTINE(cross, xp::cross(c.in[0], c.in[1], small(c, "axisa"), small(c, "axisb"),
                                     small(c, "axisc"))),
      RENSA_ROUTINE(linalg_cross, xp::linalg::cross(c.in[0], c.in[1], c.axis())),
      RENSA_ROUTINE(cov, xp::cov(c.in[0], operand(c, 1), cov_options(c))),
      RENSA_ROUTINE(cov_weights, weighted_cov(c)),
      RENSA_ROUTINE(corrcoef, xp::corrcoef(c.in[0], operand(c, 1))),
  };
}

Routines signals() {
  return {
      RENSA_ROUTINE(convolve, xp::convolve(c.in[0], c.in[1], c.text("mode"))),
      RENSA_ROUTINE(correlate, xp::correlate(c.in[0], c.in[1], c.text("mode"))),
      RENSA_ROUTINE(interp, xp::interp(c.in[0], c.in[1], c.in[2])),
      RENSA_ROUTINE(interp_ends, xp::interp(c.in[0], c.in[1], c.in[2],
                                            {.left = c.real("left"), .right = c.real("right")})),
      RENSA_ROUTINE(interp_round,
                    xp::interp(c.in[0], c.in[1], c.in[2], {.period = c.real("period")})),
      RENSA_ROUTINE(polyfit, xp::polyfit(c.in[0], c.in[1], small(c, "degree"), {}, operand(c, 2))),
      RENSA_ROUTINE(bartlett, xp::bartlett(c.integer("m"), c.device)),
      RENSA_ROUTINE(blackman, xp::blackman(c.integer("m"), c.device)),
      RENSA_ROUTINE(hamming, xp::hamming(c.integer("m"), c.device)),
      RENSA_ROUTINE(hanning, xp::hanning(c.integer("m"), c.device)),
      RENSA_ROUTINE(kaiser, xp::kaiser(c.integer("m"), c.real("beta"), c.device)),
      RENSA_ROUTINE(polyval, xp::polyval(c.in[0], c.in[1])),
      RENSA_ROUTINE(polyadd, xp::polyadd(c.in[0], c.in[1])),
      RENSA_ROUTINE(polysub, xp::polysub(c.in[0], c.in[1])),
      RENSA_ROUTINE(polymul, xp::polymul(c.in[0], c.in[1])),
      RENSA_ROUTINE(polyder, xp::polyder(c.in[0], small(c, "m"))),
      RENSA_ROUTINE(polyint, xp::polyint(c.in[0], small(c, "m"))),
      RENSA_ROUTINES(poly1d, polynomials(c)),
      RENSA_ROUTINE(apply_reversed, xp::apply_along_axis([](const Array& x) { return xp::flip(x); },
                                                         c.axis(), c.in[0])),
      RENSA_ROUTINE(apply_last, xp::apply_along_axis([](const Array& x) -> Array { return x[-1]; },
                                                     c.axis(), c.in[0])),
      RENSA_ROUTINE(apply_square,
                    xp::apply_along_axis([](const Array& x) { return x.expand_dims(1) + x; },
                                         c.axis(), c.in[0])),
      RENSA_ROUTINE(piecewise, pieces(c)),
  };
}

// Sums of products cancel, so that errors stand beside the operands (up to 3), not the result.
Closeness closeness(const Call& call, Dtype dtype) {
  Dtype input = call.in.empty() ? dtype : call.in[0].dtype();
  bool half = input == float16 || dtype == float16;
  double near = half ? tolerance(float16) : tolerance(dtype);
  return {2 * near, 30 * near, false};
}

TEST(Composed, MatchesNumPy) {
  Routines routines = calculus();
  routines.merge(signals());
  testing::replay("numpy_composed.txt", routines, 1800, closeness);
}

TEST(Composed, LongConvolution) {
  for (Device device : test_devices()) {
    for (Dtype dtype : {bfloat16, int32, uint64, float32, float64, complex64, complex128}) {
      for (auto [n, m] : {std::pair{5000, 700}, {1025, 257}, {300, 1000}, {100'003, 3}}) {
        Array a = (xp::arange(n, int64, device) * 7 % 13).astype(dtype);
        Array v = (xp::arange(m, int64, device) * 5 % 11 - (dtype == uint64 ? 0 : 5)).astype(dtype);
        std::vector<double> x = a.to_vector<double>(), y = v.to_vector<double>();
        std::vector<double> want(x.size() + y.size() - 1);
        for (std::size_t i = 0; i < x.size(); ++i) {
          for (std::size_t k = 0; k < y.size(); ++k) want[i + k] += x[i] * y[k];
        }
        Array out = xp::convolve(a, v);
        EXPECT_EQ(out.dtype(), dtype);
        // Whole numbers: exact but for the last rounding.
        Array expected = xp::array(want, device).astype(dtype);
        EXPECT_TRUE(xp::array_equal(out, expected)) << dtype_name(dtype) << n << " " << m;
        EXPECT_TRUE(xp::array_equal(xp::correlate(a, xp::flip(v), "full"), expected));
        EXPECT_TRUE(xp::array_equal(xp::convolve(a, v, "valid"),
                                    expected[Slice(std::min(n, m) - 1, std::max(n, m))]));
      }
    }
  }
}

TEST(Composed, InterpolatesManyPoints) {
  for (Device device : test_devices()) {
    std::int64_t n = 4097;
    Array at = xp::linspace(0, 2 * std::numbers::pi, n, float64, device);
    Array x = xp::linspace(-1, 7, 100'000, float64, device);
    std::vector<double> got = xp::interp(x, at, xp::sin(at)).to_vector<double>();
    std::vector<double> places = x.to_vector<double>();
    for (std::size_t i = 0; i < places.size(); ++i) {
      bool inside = places[i] >= 0 && places[i] <= 2 * std::numbers::pi;
      ASSERT_NEAR(got[i], inside ? std::sin(places[i]) : 0, 1e-6) << places[i];
    }
    Array ends = xp::interp(xp::array({-1.0, 9.0}, device), at, at + 1.0, {.left = 5});
    EXPECT_EQ(ends[0].item<double>(), 5);
    EXPECT_NEAR(ends[1].item<double>(), 2 * std::numbers::pi + 1, 1e-12);
  }
}

TEST(Composed, BigArrays) {
  for (Device device : test_devices()) {
    Array a = xp::square(xp::arange(200'000, float64, device)).reshape({2, 100'000});
    Array d = xp::diff(a, 2);
    EXPECT_EQ(d.shape(), (Shape{2, 99'998}));
    EXPECT_TRUE(xp::all(xp::equal(d, 2.0)).item<bool>());
    Array g = xp::gradient(a, {}, {.axis = 1, .edge_order = 2})[0];
    EXPECT_TRUE(xp::allclose(g, xp::arange(0, 400'000, 2, float64, device).reshape({2, 100'000})));
    EXPECT_NEAR(xp::trapezoid(xp::ones({1'000'001}, float64, device), 1e-6).item<double>(), 1,
                1e-12);
    Array c = xp::cov(a);
    EXPECT_EQ(c.shape(), (Shape{2, 2}));
    EXPECT_TRUE(xp::allclose(c, c.T()));
    Array p = xp::array({1.0, -3.0, 2.0}, device);
    EXPECT_TRUE(xp::array_equal(xp::polyval(p, xp::array({1.0, 2.0, 0.5}, device)),
                                xp::array({0.0, 0.0, 0.75}, device)));
  }
}

TEST(Composed, BfloatKeepsItsDtype) {
  for (Device device : test_devices()) {
    Array a = xp::array({1.f, 2.f, 4.f}, device).astype(bfloat16);
    EXPECT_EQ(xp::diff(a).to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(xp::gradient(a)[0].dtype(), bfloat16);
    EXPECT_EQ(xp::gradient(a)[0].to_vector<float>(), (std::vector<float>{1, 1.5, 2}));
    EXPECT_EQ(xp::cross(a, a).dtype(), bfloat16);
    EXPECT_EQ(xp::trapezoid(a).dtype(), bfloat16);
    EXPECT_EQ(xp::cov(a).dtype(), float64);
  }
}

TEST(Composed, PolynomialsAreValues) {
  for (Device device : test_devices()) {
    xp::poly1d p(xp::array({0, 1, -1}, device));
    EXPECT_EQ(p.order(), 1);
    EXPECT_TRUE(p * p == xp::poly1d(xp::array({1, -2, 1}, device)));
    EXPECT_FALSE(p == p + p);
    EXPECT_EQ((p - p).order(), 0);
    EXPECT_EQ(xp::poly1d(xp::zeros({0}, int64, device)).c().to_vector<int>(), std::vector<int>{0});
    EXPECT_EQ(p(xp::array(5, device)).item<int>(), 4);
  }
}

// The roots in an order of their own.
std::vector<std::complex<double>> sorted_roots(const Array& p) {
  Array found = xp::roots(p);
  EXPECT_EQ(dtype_kind(found.dtype()), 'c');
  EXPECT_EQ(found.device(), p.device());
  auto roots = found.to_vector<std::complex<double>>();
  std::sort(roots.begin(), roots.end(), [](auto a, auto b) {
    return std::abs(a.real() - b.real()) > 1e-6 ? a.real() < b.real() : a.imag() < b.imag();
  });
  return roots;
}

void expect_roots(const Array& p, const std::vector<std::complex<double>>& want) {
  auto got = sorted_roots(p);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_LT(std::abs(got[i] - want[i]), 2e-5) << i;
}

TEST(Composed, RootsOfPolynomials) {
  for (Device device : testing::linalg_devices()) {
    expect_roots(xp::array({1, -6, 11, -6}, device), {1, 2, 3});
    expect_roots(xp::array({0.0, 2.0, 0.0, 8.0}, device), {{0, -2}, {0, 2}});
    expect_roots(xp::array({1.f, -3.f, 0.f, 0.f}, device), {0, 0, 3});
    expect_roots(xp::array({5, 0}, device), {0});
    expect_roots(xp::array({7}, device), {});
    expect_roots(xp::array({0, 0}, device), {});
    expect_roots(xp::array({1.0, 0.0, 1.0}, device).astype(complex64), {{0, -1}, {0, 1}});
    EXPECT_EQ(xp::roots(xp::array({1.f, 2.f}, device)).dtype(), complex64);
    EXPECT_EQ(xp::poly1d(xp::array({1, -3, 2}, device)).roots().size(), 2);
  }
}

TEST(Composed, ErrorsNameTheRoutine) {
  Array a = xp::ones({3}), b = xp::ones({2, 3}), none;
  auto names = [](const std::string& text, const char* name) {
    EXPECT_EQ(text.find(name), 0u) << text;
  };
  names(thrown<ValueError>([&] { xp::diff(none); }), "diff");
  names(thrown<ValueError>([&] { xp::gradient(b, {1.0, 2.0, 3.0}); }), "gradient: 3 spacings");
  names(thrown<ShapeError>([&] { xp::gradient(b, {xp::ones({4})}, {.axis = 1}); }), "gradient");
  names(thrown<ShapeError>([&] { xp::convolve(b, a); }), "convolve: cpu (2, 3) float32");
  names(thrown<ValueError>([&] { xp::correlate(a, a, "most"); }), "correlate: mode is \"most\"");
  names(thrown<ShapeError>([&] { xp::interp(a, a, b); }), "interp");
  names(thrown<DtypeError>([&] { xp::interp(a, a.astype(complex64), a); }), "interp");
  names(thrown<ShapeError>([&] { xp::cov(a, none, {.fweights = xp::ones({2})}); }), "cov");
  names(thrown<ShapeError>([&] { xp::polyval(b, a); }), "polyval");
  names(thrown<ShapeError>([&] { xp::linalg::cross(b, xp::ones({2, 2})); }), "cross");
  names(thrown<ValueError>([&] { xp::piecewise(a, {xp::greater(a, 0)}, {1, 2, 3}); }), "piecewise");
}

}  // namespace
}  // namespace rensa

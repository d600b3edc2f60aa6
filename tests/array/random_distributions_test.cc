// Distributions: the shares of values below given points against SciPy's distribution functions,
// parameters that broadcast, states, choices, and equality of the devices.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>

#include "rensa/array/random.h"
#include "rensa/core/samplers.h"
#include "rensa/core/thread_pool.h"
#include "tests/array/arrays.h"
#include "tests/num_threads.h"

namespace rensa {
namespace {

using V = std::vector<double>;
using xp::random::Generator;
using Parameters = std::vector<xp::random::Parameter>;
using Draw =
    std::function<Array(const Generator&, const Parameters&, const xp::random::Size&, Dtype)>;

// Each distribution by name, with the parameters of a line of the table.
const std::map<std::string, Draw>& floats() {
#define DRAW_0(name)                                                             \
  {                                                                              \
#name, [](auto& g, auto&, auto& s, Dtype d) { return g.name(s.shape(), d); } \
  }
#define DRAW_1(name)                                                             \
  {                                                                              \
#name, [](auto& g, auto& p, auto& s, Dtype d) { return g.name(p[0], s, d); } \
  }
#define DRAW_2(name)                                                                   \
  {                                                                                    \
#name, [](auto& g, auto& p, auto& s, Dtype d) { return g.name(p[0], p[1], s, d); } \
  }
#define DRAW_3(name)                                                                         \
  {                                                                                          \
#name, [](auto& g, auto& p, auto& s, Dtype d) { return g.name(p[0], p[1], p[2], s, d); } \
  }
  static const std::map<std::string, Draw> table = {DRAW_2(uniform),
                                                    DRAW_2(normal),
                                                    DRAW_2(lognormal),
                                                    DRAW_1(exponential),
                                                    DRAW_2(gumbel),
                                                    DRAW_2(laplace),
                                                    DRAW_2(logistic),
                                                    DRAW_0(standard_cauchy),
                                                    DRAW_1(standard_gamma),
                                                    DRAW_2(gamma),
                                                    DRAW_2(beta),
                                                    DRAW_1(chisquare),
                                                    DRAW_2(noncentral_chisquare),
                                                    DRAW_2(f),
                                                    DRAW_3(noncentral_f),
                                                    DRAW_1(standard_t),
                                                    DRAW_1(pareto),
                                                    DRAW_1(power),
                                                    DRAW_1(rayleigh),
                                                    DRAW_1(weibull),
                                                    DRAW_3(triangular),
                                                    DRAW_2(wald),
                                                    DRAW_2(vonmises)};
  return table;
}
const std::map<std::string, Draw>& counts() {
  static const std::map<std::string, Draw> table = {
      DRAW_1(poisson),        DRAW_2(binomial), DRAW_2(negative_binomial), DRAW_1(geometric),
      DRAW_3(hypergeometric), DRAW_1(zipf),     DRAW_1(logseries)};
  return table;
}

struct Law {
  std::string name;
  Parameters parameters;
  V x, p;
};

std::vector<Law> laws() {
  std::vector<Law> result;
  std::ifstream file(testing::data_file("distribution_tables.txt"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Law law;
    words >> law.name;
    for (std::string word; words >> word && word != ":";) law.parameters.push_back(std::stod(word));
    for (double x, p; words >> x >> p;) {
      law.x.push_back(x);
      law.p.push_back(p);
    }
    result.push_back(std::move(law));
  }
  return result;
}

Draw draw_of(const std::string& name) {
  auto found = floats().find(name);
  return found != floats().end() ? found->second : counts().at(name);
}

bool is_float(const std::string& name) { return floats().count(name) > 0; }

class DistributionTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, DistributionTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

TEST_P(DistributionTest, FollowTheirLaws) {
  const std::int64_t n = 60000;
  int count = 0;
  for (const Law& law : laws()) {
    auto dtypes = is_float(law.name) ? std::vector<Dtype>{float32, float64}
                                     : std::vector<Dtype>{int64, float64};
    for (Dtype d : dtypes) {
      Generator g = xp::random::default_rng(123 + static_cast<std::uint64_t>(count++));
      Array drawn = draw_of(law.name)(g, law.parameters, {n}, d);
      ASSERT_EQ(drawn.dtype(), d);
      V values = drawn.to_vector<double>();
      std::sort(values.begin(), values.end());
      for (std::size_t i = 0; i < law.x.size(); ++i) {
        // A value just at x may have been rounded to either side.
        double x = law.x[i] + 1e-6 * std::abs(law.x[i]) * (d == float32);
        auto below = std::upper_bound(values.begin(), values.end(), x) - values.begin();
        // Kolmogorov's bound that one sample in 30,000 passes, of the largest difference of all.
        EXPECT_NEAR(static_cast<double>(below) / n, law.p[i], 2.28 / std::sqrt(n))
            << law.name << " " << dtype_name(d) << " at " << x;
      }
    }
  }
  EXPECT_GT(count, 80);
}

TEST_P(DistributionTest, EveryDtypeAndShape) {
  for (const Law& law : laws()) {
    auto dtypes = is_float(law.name) ? std::vector<Dtype>{float16, bfloat16, float32, float64}
                                     : std::vector<Dtype>{int16, int32, uint32, int64, float32};
    for (Dtype d : dtypes) {
      Generator g = xp::random::default_rng(5);
      Draw draw = draw_of(law.name);
      for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{2, 3}}) {
        Array a = draw(g, law.parameters, shape, d);
        EXPECT_EQ(a.shape(), shape);
        EXPECT_EQ(a.dtype(), d);
      }
    }
    Dtype wrong = is_float(law.name) ? int32 : complex64;
    EXPECT_THROW(draw_of(law.name)(xp::random::default_rng(5), law.parameters, {2}, wrong),
                 DtypeError)
        << law.name;
  }
}

// Numbers and arrays of the same numbers give the same variates, whatever way these broadcast.
TEST_P(DistributionTest, ParametersBroadcast) {
  for (const Law& law : laws()) {
    if (law.parameters.empty()) continue;
    Draw draw = draw_of(law.name);
    Dtype d = is_float(law.name) ? float64 : int64;
    const Shape size{3, 700};
    Array want = draw(xp::random::default_rng(6), law.parameters, size, d);
    for (const Shape& shape : {Shape{}, Shape{700}, Shape{3, 1}, size}) {
      Parameters arrays = law.parameters;
      for (auto& p : arrays) p = xp::full(shape, p.number(), float64);
      Array got = draw(xp::random::default_rng(6), arrays, size, d);
      EXPECT_TRUE(testing::matches(got, want, {1e-13, 1e-13})) << law.name << shape.str();
      EXPECT_EQ(draw(xp::random::default_rng(6), arrays, {}, d).shape(), shape);
    }
    Parameters wrong = law.parameters;
    wrong[0] = xp::full({4}, wrong[0].number(), float64);
    EXPECT_THROW(draw(xp::random::default_rng(6), wrong, size, d), ShapeError) << law.name;
  }
  // A parameter for each row, of another dtype and not contiguous.
  Array lam = xp::array({1, 500, 3, 20000}, GetParam()).astype(int32)[Slice(none, none, 2)];
  V got = xp::random::default_rng(7)
              .poisson(lam.reshape({2, 1}), {2, 20000})
              .mean(1)
              .to_vector<double>();
  EXPECT_NEAR(got[0], 1, 0.05);
  EXPECT_NEAR(got[1], 3, 0.08);
  V bounds = xp::random::default_rng(7)
                 .randint(xp::array({-5, 100}), xp::array({-3, 1000}), {5000, 2})
                 .to_vector<double>();
  for (std::size_t i = 0; i < bounds.size(); i += 2) {
    ASSERT_TRUE(bounds[i] == -5 || bounds[i] == -4);
    ASSERT_TRUE(bounds[i + 1] >= 100 && bounds[i + 1] < 1000);
  }
}

TEST_P(DistributionTest, ElementsDependOnTheirIndexAlone) {
  testing::NumThreads scope(get_num_threads());
  for (const Law& law : laws()) {
    Dtype d = is_float(law.name) ? float32 : int64;
    Draw draw = draw_of(law.name);
    set_num_threads(1);
    V one = draw(xp::random::default_rng(8), law.parameters, {9000}, d).to_vector<double>();
    set_num_threads(4);
    V four = draw(xp::random::default_rng(8), law.parameters, {9000}, d).to_vector<double>();
    EXPECT_EQ(one, four) << law.name;
    V fewer = draw(xp::random::default_rng(8), law.parameters, {11}, d).to_vector<double>();
    one.resize(11);
    EXPECT_EQ(fewer, one) << law.name;
  }
}

TEST(Distributions, DevicesDrawTheSame) {
  RENSA_NEEDS_GPUS(1);
  for (const Law& law : laws()) {
    Draw draw = draw_of(law.name);
    Dtype d = is_float(law.name) ? float64 : int64;
    Array host = draw(xp::random::default_rng(9, cpu()), law.parameters, {50000}, d);
    Array device = draw(xp::random::default_rng(9, gpu(0)), law.parameters, {50000}, d);
    if (d == int64) {
      EXPECT_EQ(host.to_vector<double>(), device.to_vector<double>()) << law.name;
    } else {
      EXPECT_TRUE(testing::matches(device.to(cpu()), host, {1e-10, 1e-10})) << law.name;
    }
  }
  auto normals = [](Device on) {
    return xp::random::default_rng(10, on).standard_normal({2000001}).to_vector<float>();
  };
  auto host = normals(cpu()), device = normals(gpu(0));
  float worst = 0;
  for (std::size_t i = 0; i < host.size(); ++i)
    worst = std::max(worst, std::abs(host[i] - device[i]));
  EXPECT_LT(worst, 4e-6f);
}

TEST_P(DistributionTest, NumbersOutOfTheDomainAreNamed) {
  Generator g = xp::random::default_rng(1);
  auto names = [](const std::string& text, const char* operation, const char* parameter) {
    EXPECT_NE(text.find(operation), std::string::npos) << text;
    EXPECT_NE(text.find(parameter), std::string::npos) << text;
  };
  names(testing::thrown<ValueError>([&] { g.gamma(-1, 1, {2}); }), "gamma", "shape");
  names(testing::thrown<ValueError>([&] { g.binomial(5, 1.5, {2}); }), "binomial", "p ");
  names(testing::thrown<ValueError>([&] { g.exponential(-2, {2}); }), "exponential", "scale");
  names(testing::thrown<ValueError>([&] { g.lognormal(0, -2, {2}); }), "lognormal", "sigma");
  EXPECT_THROW(g.poisson(-1), ValueError);
  EXPECT_THROW(g.poisson(1e19), ValueError);
  EXPECT_THROW(g.geometric(0), ValueError);
  EXPECT_THROW(g.zipf(1), ValueError);
  EXPECT_THROW(g.logseries(1), ValueError);
  EXPECT_THROW(g.triangular(1, 0, 2), ValueError);
  EXPECT_THROW(g.hypergeometric(1, 1, 3), ValueError);
  EXPECT_THROW(g.standard_t(std::nan("")), ValueError);
  EXPECT_THROW(g.gamma(xp::ones({2}, complex64)), DtypeError);
  // In arrays they give NaN.
  V v = g.gamma(xp::array({-1.0, 2.0, std::nan("")})).to_vector<double>();
  EXPECT_TRUE(std::isnan(v[0]) && !std::isnan(v[1]) && std::isnan(v[2]));
}

TEST_P(DistributionTest, NumbersTooLargeForTheirCountsAreNamed) {
  Generator g = xp::random::default_rng(1);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(g.negative_binomial(5, 1e-300, {2}), ValueError);
  EXPECT_THROW(g.negative_binomial(1e200, 0.5, {2}), ValueError);
  EXPECT_THROW(g.binomial(infinity, 0.5, {2}), ValueError);
  EXPECT_THROW(g.hypergeometric(infinity, 1, 1, {2}), ValueError);
  EXPECT_THROW(g.hypergeometric(9e18, 9e18, 5, {2}), ValueError);
  EXPECT_THROW(g.normal(Array()), ValueError);
  EXPECT_THROW(g.poisson(Array(), {2}), ValueError);
  // In arrays they give NaN, and are not looked for without end.
  Array large = xp::array({infinity, 1e300});
  for (const Array& drawn :
       {g.poisson(large, {}, float64), g.binomial(large, 0.5, {}, float64),
        g.hypergeometric(large, 3, 2, {}, float64), g.negative_binomial(large, 0.5, {}, float64)}) {
    for (double value : drawn.to_vector<double>()) EXPECT_TRUE(std::isnan(value));
  }
}

// Beside the normal distribution that these are so near to.
TEST_P(DistributionTest, HypergeometricOfAnySize) {
  struct Case {
    double good, bad, sample;
  };
  const std::int64_t n = 20000;
  for (const Case& c : {Case{1e18, 1e18, 1e18}, Case{4e18, 1e18, 3e12}, Case{3e9, 7e9, 9.5e9}}) {
    double total = c.good + c.bad, mean = c.sample * (c.good / total);
    double deviation = std::sqrt(mean * (c.bad / total) * ((total - c.sample) / (total - 1)));
    V drawn = xp::random::default_rng(31)
                  .hypergeometric(c.good, c.bad, c.sample, {n}, float64)
                  .to_vector<double>();
    std::sort(drawn.begin(), drawn.end());
    for (double z : {-2.0, -1.2, -0.5, 0.0, 0.3, 0.9, 1.6, 2.4}) {
      auto below = std::upper_bound(drawn.begin(), drawn.end(), mean + z * deviation);
      EXPECT_NEAR(static_cast<double>(below - drawn.begin()) / n,
                  0.5 * std::erfc(-z / std::sqrt(2)), 2.28 / std::sqrt(n))
          << c.good << " at " << z;
    }
  }
}

TEST_P(DistributionTest, Limits) {
  Generator g = xp::random::default_rng(2);
  EXPECT_EQ(g.standard_gamma(0, {3}).to_vector<int>(), std::vector<int>({0, 0, 0}));
  EXPECT_EQ(g.poisson(0, {2}).to_vector<int>(), std::vector<int>({0, 0}));
  EXPECT_EQ(g.binomial(7, 0, {2}).to_vector<int>(), std::vector<int>({0, 0}));
  EXPECT_EQ(g.binomial(7, 1, {2}).to_vector<int>(), std::vector<int>({7, 7}));
  EXPECT_EQ(g.binomial(0, 0.4, {2}).to_vector<int>(), std::vector<int>({0, 0}));
  EXPECT_EQ(g.geometric(1, {2}).to_vector<int>(), std::vector<int>({1, 1}));
  EXPECT_EQ(g.normal(3, 0, {2}).to_vector<float>(), std::vector<float>({3, 3}));
  // Tiny shapes: the shares still sum to 1 and hold no NaN.
  V shares = g.dirichlet(xp::full({3}, 1e-3, float64), {500}, float64).sum(-1).to_vector<double>();
  for (double share : shares) EXPECT_NEAR(share, 1, 1e-12);
  V betas = g.beta(1e-3, 1e-3, {5000}, float64).to_vector<double>();
  EXPECT_NEAR(std::accumulate(betas.begin(), betas.end(), 0.0) / 5000, 0.5, 0.03);
}

TEST_P(DistributionTest, Vectors) {
  Generator g = xp::random::default_rng(3);
  V means = g.dirichlet(xp::array({1.0, 2.0, 5.0}), {20000}, float64).mean(0).to_vector<double>();
  EXPECT_NEAR(means[0], 0.125, 0.005);
  EXPECT_NEAR(means[1], 0.25, 0.005);
  EXPECT_NEAR(means[2], 0.625, 0.005);
  Array counts = g.multinomial(40, xp::array({0.2, 0.5, 0.3}), {10000});
  EXPECT_EQ(counts.shape(), Shape({10000, 3}));
  EXPECT_EQ(counts.sum(1).min().item<int>(), 40);
  EXPECT_EQ(counts.sum(1).max().item<int>(), 40);
  V shares = counts.astype(float64).mean(0).to_vector<double>();
  EXPECT_NEAR(shares[0], 8, 0.15);
  EXPECT_NEAR(shares[1], 20, 0.15);
  EXPECT_EQ(g.multinomial(3, xp::array({1.0})).to_vector<int>(), std::vector<int>({3}));
  EXPECT_THROW(g.multinomial(3, xp::array({0.7, 0.7, 0.1})), ValueError);
  EXPECT_THROW(g.multinomial(-1, xp::array({1.0})), ValueError);
  EXPECT_THROW(g.dirichlet(xp::ones({2, 2}, float64)), ShapeError);
}

TEST_P(DistributionTest, Choices) {
  Generator g = xp::random::default_rng(4);
  V shares(4);
  for (double i : g.choice(4, {40000}, true, xp::array({0.1, 0.0, 0.6, 0.3})).to_vector<double>()) {
    shares[static_cast<std::size_t>(i)] += 1.0 / 40000;
  }
  EXPECT_NEAR(shares[0], 0.1, 0.01);
  EXPECT_EQ(shares[1], 0);
  EXPECT_NEAR(shares[2], 0.6, 0.01);
  auto distinct = g.choice(1000, {10, 100}, false).to_vector<int>();
  std::sort(distinct.begin(), distinct.end());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(distinct[static_cast<std::size_t>(i)], i);
  // Two of three without replacement: the first is i with p[i], the pair {0, 2} with
  // p0 p2 / (1 - p0) + p2 p0 / (1 - p2).
  int pair = 0, first = 0;
  Array p = xp::array({0.2, 0.3, 0.5});
  for (int i = 0; i < 4000; ++i) {
    auto two = g.choice(3, {2}, false, p).to_vector<int>();
    ASSERT_NE(two[0], two[1]);
    first += two[0] == 2;
    pair += two[0] + two[1] == 2;
  }
  EXPECT_NEAR(first / 4000.0, 0.5, 0.03);
  EXPECT_NEAR(pair / 4000.0, 0.2 * 0.5 / 0.8 + 0.5 * 0.2 / 0.5, 0.03);
  Array rows = xp::arange(12).reshape({4, 3});
  EXPECT_EQ(g.choice(rows, {2, 5}).shape(), Shape({2, 5, 3}));
  EXPECT_THROW(g.choice(3, {4}, false), ValueError);
  EXPECT_THROW(g.choice(0, {1}), ValueError);
  EXPECT_THROW(g.choice(3, {2}, false, xp::array({1.0, 0.0, 0.0})), ValueError);
  EXPECT_THROW(g.choice(3, {2}, true, xp::array({0.5, 0.2, 0.2})), ValueError);
  EXPECT_THROW(g.choice(3, {2}, true, xp::array({0.5, 0.5})), ValueError);
  EXPECT_EQ(g.choice(0, {0}).shape(), Shape({0}));
}

TEST_P(DistributionTest, ShuffleReordersRowsInPlace) {
  Generator g = xp::random::default_rng(5);
  Array a = xp::arange(3000).reshape({1000, 3});
  Array view = a[{Slice(none, none, -1), Slice(none, none, 2)}];
  g.shuffle(view);
  auto values = a.to_vector<int>();
  std::vector<int> firsts;
  for (std::size_t i = 0; i < values.size(); i += 3) {
    EXPECT_EQ(values[i + 2], values[i] + 2);
    EXPECT_EQ(values[i + 1], static_cast<int>(i) + 1);
    firsts.push_back(values[i]);
  }
  EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
  std::sort(firsts.begin(), firsts.end());
  for (std::size_t i = 0; i < firsts.size(); ++i) ASSERT_EQ(firsts[i], static_cast<int>(3 * i));
  Array order = g.permutation(xp::array({5, 6, 7}));
  EXPECT_EQ(order.sum().item<int>(), 18);
  EXPECT_THROW(g.shuffle(xp::array(3)), ShapeError);
  EXPECT_THROW(g.shuffle(xp::array({1}).broadcast_to({3})), ValueError);
}

TEST_P(DistributionTest, StatesReplay) {
  Generator g = xp::random::default_rng(77);
  g.normal(0, 1, {10});
  auto state = g.get_state();
  auto draw = [](const Generator& from) {
    auto variates = from.gamma(2, 1, {50}).to_vector<float>();
    return std::pair(variates, from.permutation(50).to_vector<int>());
  };
  auto want = draw(g);
  auto end = g.get_state();
  EXPECT_NE(draw(g).first, want.first);
  g.set_state(xp::random::GeneratorState::parse(state.str()));
  EXPECT_EQ(draw(g), want);
  Generator other = xp::random::default_rng();
  other.set_state(xp::random::GeneratorState::from_array(state.to_array()));
  EXPECT_EQ(draw(other), want);
  xp::random::set_random_state(state);
  EXPECT_EQ(xp::random::gamma(2, 1, {50}).to_vector<float>(), want.first);
  EXPECT_EQ(xp::random::permutation(50).to_vector<int>(), want.second);
  EXPECT_EQ(xp::random::get_random_state(), end);
  EXPECT_EQ(state.str(), "philox4x32-10 77 3");
  for (const char* text : {"", "philox4x32-10", "philox4x32-10 1", "philox4x32-10 1 -2",
                           "philox4x32-10 1 2x", "mt19937 1 2"}) {
    EXPECT_THROW(xp::random::GeneratorState::parse(text), ValueError) << text;
  }
  EXPECT_THROW(xp::random::GeneratorState::from_array(xp::array({1, 2})), DtypeError);
  EXPECT_THROW(xp::random::GeneratorState::from_array(xp::zeros({3}, uint64)), ShapeError);
}

TEST_P(DistributionTest, HandlesShareAndSeedsDiffer) {
  Generator g = xp::random::default_rng(1), same = g;
  auto first = g.random({8}).to_vector<float>();
  EXPECT_NE(same.random({8}).to_vector<float>(), first);
  EXPECT_NE(xp::random::default_rng(2).random({8}).to_vector<float>(), first);
  EXPECT_EQ(xp::random::default_rng(1).random({8}).to_vector<float>(), first);
  EXPECT_NE(xp::random::default_rng().get_state(), xp::random::default_rng().get_state());
}

TEST_P(DistributionTest, OtherNames) {
  using namespace xp::random;
  auto again = [](auto f) {
    seed(21);
    return f().template to_vector<float>();
  };
  auto want = again([] { return random({2, 3}); });
  EXPECT_EQ(again([] { return random_sample({2, 3}); }), want);
  EXPECT_EQ(again([] { return ranf({2, 3}); }), want);
  EXPECT_EQ(again([] { return sample({2, 3}); }), want);
  EXPECT_EQ(again([] { return rand(2, 3); }), want);
  EXPECT_EQ(again([] { return rand({2, 3}); }), want);
  EXPECT_EQ(again([] { return randn(2, 3); }), again([] { return standard_normal({2, 3}); }));
  EXPECT_EQ(again([] { return normal(); }).size(), 1u);
  EXPECT_EQ(rand().shape(), Shape());
  auto inclusive = random_integers(1, 3, {500}).to_vector<int>();
  EXPECT_EQ(*std::max_element(inclusive.begin(), inclusive.end()), 3);
  EXPECT_EQ(*std::min_element(inclusive.begin(), inclusive.end()), 1);
  seed(22);
  auto some = bytes(13);
  seed(22);
  auto more = bytes(16);
  more.resize(13);
  EXPECT_EQ(some, more);
  EXPECT_EQ(bytes(0).size(), 0u);
}

TEST_P(DistributionTest, WideIntegersAreEven) {
  // Three quarters of what a word holds: a remainder alone would prefer the lower third.
  std::int64_t span = std::int64_t{3} << 30;
  V v = xp::random::default_rng(9).randint(0, span, {30000}).to_vector<double>();
  auto low = std::count_if(v.begin(), v.end(), [&](double x) { return x < span / 3.0; });
  EXPECT_NEAR(static_cast<double>(low) / 30000, 1.0 / 3, 0.012);
}

TEST(Samplers, FactorialsHaveTheirDigits) {
  for (double k : {0.0, 1.0, 2.0, 5.0, 9.0, 10.0, 50.0, 1000.0, 1e6}) {
    EXPECT_NEAR(draw::log_factorial(k), std::lgamma(k + 1), 1e-13 * (1 + std::lgamma(k + 1)));
  }
}

}  // namespace
}  // namespace rensa

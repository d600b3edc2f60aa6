// Random numbers: the values of an independent Philox, repeatability, statistics, permutations.
#include <algorithm>
#include <fstream>
#include <numeric>

#include "rensa/array/random.h"
#include "rensa/device/launcher.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using V = std::vector<double>;

class RandomTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, RandomTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

TEST_P(RandomTest, FirstValuesAreThoseOfAnIndependentPhilox) {
  std::ifstream file(testing::data_file("philox.txt"));
  int count = 0;
  for (std::string seed, what, text; file >> seed >> what >> text; ++count) {
    Array want = testing::read_array(text, cpu());
    xp::random::seed(std::stoull(seed));
    Array got = what == "uniform" ? xp::random::uniform(0, 1, want.shape(), want.dtype())
                                  : xp::random::randint(-500, 500, want.shape());
    EXPECT_TRUE(testing::matches(got.to(cpu()), want, {})) << seed << " " << what;
  }
  EXPECT_EQ(count, 12);
}

TEST_P(RandomTest, SeedsRepeatAndCallsDiffer) {
  auto draw = [] { return xp::random::normal(0, 1, {100}).to_vector<float>(); };
  xp::random::seed(3);
  auto first = draw(), second = draw();
  EXPECT_NE(first, second);
  xp::random::seed(3);
  EXPECT_EQ(draw(), first);
  EXPECT_EQ(draw(), second);
  xp::random::seed(4, GetParam());
  EXPECT_NE(draw(), first);
  xp::random::seed(3, GetParam());
  EXPECT_EQ(draw(), first);
}

TEST_P(RandomTest, ACallIsAPrefixOfALongerOne) {
  for (Dtype d : {float16, bfloat16, float32, float64}) {
    xp::random::seed(5);
    auto shorter = xp::random::normal(0, 1, {10}, d).to_vector<double>();
    xp::random::seed(5);
    auto longer = xp::random::normal(0, 1, {5000}, d).to_vector<double>();
    longer.resize(10);
    EXPECT_EQ(shorter, longer);
  }
}

TEST_P(RandomTest, CountersAreTakenByTheNumberOfWords) {
  // Four float32 or two float64 use up one counter: what follows is the same.
  xp::random::seed(6);
  xp::random::uniform(0, 1, {5});
  auto after_two = xp::random::uniform(0, 1, {4}).to_vector<float>();
  xp::random::seed(6);
  xp::random::uniform(0, 1, {4}, float64);
  EXPECT_EQ(xp::random::uniform(0, 1, {4}).to_vector<float>(), after_two);
  xp::random::seed(6);
  EXPECT_EQ(xp::random::take(GetParam(), 2).offset.integer, 0);
  EXPECT_EQ(xp::random::take(GetParam(), 1).offset.integer, 2);
  xp::random::uniform(0, 1, {0});
  EXPECT_EQ(xp::random::take(GetParam(), 1).offset.integer, 3);
}

double mean_of(const V& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
double variance_of(const V& v) {
  double mean = mean_of(v), sum = 0;
  for (double x : v) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(v.size());
}

TEST_P(RandomTest, Statistics) {
  xp::random::seed(7);
  const std::int64_t n = 200000;
  for (Dtype d : {float16, bfloat16, float32, float64}) {
    V u = xp::random::uniform(-1, 3, {n}, d).to_vector<double>();
    EXPECT_NEAR(mean_of(u), 1, 0.02) << dtype_name(d);
    EXPECT_NEAR(variance_of(u), 16.0 / 12, 0.02) << dtype_name(d);
    EXPECT_GE(*std::min_element(u.begin(), u.end()), -1);
    EXPECT_LE(*std::max_element(u.begin(), u.end()), 3);
    V z = xp::random::normal(2, 0.5, {n}, d).to_vector<double>();
    EXPECT_NEAR(mean_of(z), 2, 0.01) << dtype_name(d);
    EXPECT_NEAR(variance_of(z), 0.25, 0.01) << dtype_name(d);
    double fourth = 0;
    for (double x : z) fourth += std::pow((x - 2) / 0.5, 4) / static_cast<double>(n);
    EXPECT_NEAR(fourth, 3, 0.15) << dtype_name(d);
  }
  V pairs = xp::random::normal(0, 1, {n}).to_vector<double>();
  double correlation = 0;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) correlation += pairs[i] * pairs[i + 1];
  EXPECT_NEAR(2 * correlation / n, 0, 0.02);
  V i = xp::random::randint(-2, 3, {n}, int8).to_vector<double>();
  for (int value = -2; value < 3; ++value) {
    EXPECT_NEAR(static_cast<double>(std::count(i.begin(), i.end(), value)) / n, 0.2, 0.01);
  }
}

TEST_P(RandomTest, Integers) {
  xp::random::seed(8);
  std::int64_t low = std::numeric_limits<std::int64_t>::min(),
               high = std::numeric_limits<std::int64_t>::max();
  auto wide = xp::random::randint(low, high, {1000}).to_vector<std::int64_t>();
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), low / 2);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), high / 2);
  EXPECT_EQ(xp::random::randint(5, 6, {3}, uint8).to_vector<int>(), std::vector<int>({5, 5, 5}));
  EXPECT_THROW(xp::random::randint(0, 257, {1}, uint8), ValueError);
  EXPECT_THROW(xp::random::randint(-1, 1, {1}, uint8), ValueError);
  EXPECT_THROW(xp::random::randint(3, 3, {1}), ValueError);
  EXPECT_THROW(xp::random::randint(0, 3, {1}, float32), DtypeError);
  EXPECT_THROW(xp::random::uniform(0, 1, {1}, int32), DtypeError);
  EXPECT_THROW(xp::random::normal(0, -1, {1}), ValueError);
}

TEST_P(RandomTest, PermutationsArePermutations) {
  xp::random::seed(9);
  for (std::int64_t n : {0, 1, 1000, 60000}) {
    Array order = xp::random::permutation(n);
    EXPECT_EQ(order.dtype(), int64);
    auto v = order.to_vector<std::int64_t>();
    auto sorted = v;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      ASSERT_EQ(sorted[i], static_cast<std::int64_t>(i));
    EXPECT_EQ(v == sorted, n < 2) << n;
  }
  // Every order of three comes up.
  std::vector<int> seen(27);
  for (int i = 0; i < 600; ++i) {
    auto v = xp::random::permutation(3).to_vector<std::int64_t>();
    ++seen[static_cast<std::size_t>(9 * v[0] + 3 * v[1] + v[2])];
  }
  EXPECT_EQ(std::count_if(seen.begin(), seen.end(), [](int c) { return c > 60; }), 6);
  EXPECT_THROW(xp::random::permutation(-1), ValueError);
}

TEST(RandomDevices, DrawTheSameNumbers) {
  RENSA_NEEDS_GPUS(1);
  auto both = [](auto draw) {
    xp::random::seed(10);
    return std::pair(draw(cpu()), draw(gpu(0)));
  };
  for (Dtype d : {float16, bfloat16, float32, float64}) {
    auto [u, v] = both([&](Device on) {
      return xp::random::uniform(-2, 5, {1001}, d, on).template to_vector<double>();
    });
    EXPECT_EQ(u, v);
    auto [x, y] =
        both([&](Device on) { return xp::random::normal(0, 1, {1001}, d, on).to(cpu()); });
    EXPECT_TRUE(testing::matches(y, x, {testing::tolerance(d) * 4, testing::tolerance(d) * 2}));
  }
  auto [i, j] = both(
      [](Device on) { return xp::random::randint(-9, 1000, {1001}, int64, on).to_vector<int>(); });
  EXPECT_EQ(i, j);
  auto [p, q] = both([](Device on) { return xp::random::permutation(5000, on).to_vector<int>(); });
  EXPECT_EQ(p, q);
}

// A recorded step asks for seed and position anew in each replay.
class ScalarRecorder : public Recorder {
 public:
  void operation(Operation&) override {}
  void effect(std::function<void()>, double, EffectTarget) override {}
  int scalar(std::function<HostScalar()> source) override {
    sources.push_back(std::move(source));
    return static_cast<int>(sources.size()) - 1;
  }
  void binding(std::function<const Storage*()>) override {}
  void watch(std::function<std::vector<std::string>()>) override {}
  void state(const std::shared_ptr<StateBody>&, bool) override {}
  void output(const ArrayView&, Storage*,
              std::function<void(StoragePtr, const ArrayView&)>) override {}
  void cannot_record(const char*) override {}
  std::vector<std::function<HostScalar()>> sources;
};

TEST(RandomRecording, EachReplayTakesCountersOfItsOwn) {
  xp::random::seed(11);
  ScalarRecorder recorder;
  ThreadState::current().recorder = &recorder;
  auto position = xp::random::take(cpu(), 5);
  ThreadState::current().recorder = nullptr;
  ASSERT_EQ(recorder.sources.size(), 2u);
  EXPECT_EQ(position.seed.slot, 0);
  EXPECT_EQ(position.offset.slot, 1);
  EXPECT_EQ(position.seed.integer, 11);
  EXPECT_EQ(position.offset.integer, 0);
  EXPECT_EQ(recorder.sources[1]().integer, 5);
  EXPECT_EQ(xp::random::take(cpu(), 1).offset.integer, 10);
  xp::random::seed(12);
  EXPECT_EQ(recorder.sources[0]().integer, 12);
  EXPECT_EQ(recorder.sources[1]().integer, 0);
}

}  // namespace
}  // namespace rensa

// Reporting and summaries, and the Classifier that reports.
#include "rensa/links/reporter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Reporter, PrefixesTheObserversName) {
  L::Linear a(2), b(2);
  Reporter reporter;
  reporter.add_observer("main", a);
  Observation observation;
  {
    auto scope = reporter.scope(observation);
    report({{"loss", xp::array(1.5f)}, {"n", 3}}, a);
    report({{"free", Variable(xp::array(2.f))}});
    EXPECT_THROW(report({{"loss", 1.0}}, b), ValueError);
  }
  EXPECT_EQ(observation.size(), 3u);
  EXPECT_EQ(observation.at("main/loss").item<float>(), 1.5f);
  EXPECT_EQ(observation.at("main/n").item<double>(), 3);
  EXPECT_EQ(observation.at("free").item<float>(), 2);
  report({{"loss", 7.0}}, b);  // nobody listens: no error, nothing done
  EXPECT_EQ(observation.size(), 3u);
}

TEST(Reporter, ScopesNest) {
  L::Linear a(2);
  Reporter outer, inner;
  outer.add_observer("outer", a);
  inner.add_observer("inner", a);
  Observation first, second, third;
  auto scope = outer.scope(first);
  {
    auto inner_scope = inner.scope(second);
    report({{"x", 1}}, a);
    auto again = outer.scope(third);
    report({{"x", 2}}, a);
  }
  report({{"x", 3}}, a);
  EXPECT_EQ(first.at("outer/x").item<double>(), 3);
  EXPECT_EQ(second.at("inner/x").item<double>(), 1);
  EXPECT_EQ(third.at("outer/x").item<double>(), 2);
}

TEST(Reporter, FollowsAMovedLinkAndItsChildren) {
  auto model = L::Classifier(L::Linear(3));
  Reporter reporter;
  reporter.add_observers("main", model);
  auto moved = std::move(model);
  Observation observation;
  auto scope = reporter.scope(observation);
  report({{"x", 1}}, moved);
  report({{"y", 2}}, moved.predictor);
  EXPECT_TRUE(observation.contains("main/x"));
  EXPECT_TRUE(observation.contains("main/predictor/y"));
}

TEST(Reporter, NobodyIsAskedWhereNobodyListens) {
  int asked = 0;
  report({{"lr", [&] { return ++asked; }}});
  EXPECT_EQ(asked, 0);
}

TEST(Summary, GoesOnFromAFile) {
  testing::TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    Summary summary, read, none;
    summary.add(xp::full({}, 3, float32, device));
    summary.add(xp::full({}, 4, float32, device));
    serializers::save_npz(folder / "a.npz", summary);
    serializers::load_npz(folder / "a.npz", read);
    read.add(xp::full({}, 8, float32, device));
    EXPECT_EQ(read.count(), 3);
    EXPECT_EQ(read.mean(), 5);
    serializers::save_npz(folder / "a.npz", none);
    serializers::load_npz(folder / "a.npz", read);
    EXPECT_TRUE(std::isnan(read.mean()));
  }
}

TEST(DictSummary, AveragesWithoutAWait) {
  for (Device device : testing::test_devices()) {
    DictSummary summary;
    std::int64_t waits = cuda::sync_count();
    for (int i = 0; i < 10; ++i) {
      Observation o{{"loss", xp::full({}, static_cast<double>(i), float32, device)},
                    {"matrix", xp::ones({2, 2}, float32, device)}};
      if (i < 4) o["rare"] = xp::full({}, i, int64, device);
      summary.add(o);
      o.at("loss").fill(1e6);  // what was added stays added
    }
    EXPECT_EQ(cuda::sync_count(), waits);
    std::map<std::string, double> means = summary.compute_mean();
    EXPECT_EQ(means.size(), 2u);
    EXPECT_EQ(means.at("loss"), 4.5);
    EXPECT_EQ(means.at("rare"), 1.5);
  }
  EXPECT_TRUE(std::isnan(Summary().mean()));
}

TEST(Classifier, ComputesAndReports) {
  for (Device device : testing::test_devices()) {
    auto model = L::Classifier(L::Linear(4, 3));
    model.to_device(device);
    Reporter reporter;
    reporter.add_observer("main", model);
    Array x = xp::random::uniform(-1, 1, {5, 4}, float32, device);
    Array t = xp::array({0, 1, 2, 0, 1}, device);
    Observation observation;
    {
      auto scope = reporter.scope(observation);
      Variable loss = model(x, t);
      EXPECT_EQ(loss.body(), model.loss.value().body());
    }
    EXPECT_EQ(model.y.shape(), (Shape{5, 3}));
    EXPECT_EQ(observation.at("main/loss").item<float>(), model.loss.item<float>());
    EXPECT_EQ(observation.at("main/accuracy").item<float>(), model.accuracy.item<float>());
    model.loss.value().backward();
    EXPECT_TRUE(model.predictor.W.grad().defined());
    model.compute_accuracy = false;
    model(x, t);
    EXPECT_FALSE(model.accuracy.defined());
  }
}

TEST(Classifier, TakesItsMeasures) {
  auto model = L::Classifier(
      L::Linear(2, 1, {.initialW = 1}),
      [](const Variable& y, const Variable& t) { return F::mean(F::square(y - t)); },
      [](const Variable& y, const Variable&) { return F::sum(y); });
  Variable loss = model(xp::array({{1.f, 2.f}}), xp::array({{5.f}}));
  EXPECT_EQ(loss.item<float>(), 4);
  EXPECT_EQ(model.accuracy.item<float>(), 3);
}

}  // namespace
}  // namespace rensa

// VariableStatisticsPlot: the curves, how they are thinned out, the picture, files.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "rensa/core/error.h"
#include "rensa/device/stream.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Points = std::vector<std::pair<double, double>>;

/// The extension's curves, as its files have them.
struct Curves final : Visitor {
  explicit Curves(extensions::VariableStatisticsPlot& plot) { plot.members(*this); }
  void value(std::string_view name, const Access& access) override {
    if (name == "_curves") all = nlohmann::json::parse(std::get<std::string>(access.get()));
  }
  Points operator[](const std::string& name) const { return all.at(name).get<Points>(); }
  nlohmann::json all;
};

class VariableStatisticsPlotTest : public ::testing::Test {
 protected:
  VariableStatisticsPlotTest() { optimizer_.setup(model_); }
  training::Trainer make_trainer(int iterations, Device device = cpu(),
                                 extensions::VariableStatisticsPlotOptions options = {}) {
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    training::Trainer trainer(training::StandardUpdater(iterator, optimizer_, {.device = device}),
                              {iterations, "iteration"}, folder_ / "out");
    trainer.extend(extensions::VariableStatisticsPlot(model_, options));
    return trainer;
  }
  static Curves curves_of(const training::Trainer& trainer) {
    return Curves(dynamic_cast<extensions::VariableStatisticsPlot&>(
        trainer.get_extension("VariableStatisticsPlot")));
  }
  testing::Line model_;
  optimizers::SGD optimizer_{0.01};
  testing::TemporaryFolder folder_;
};

TEST_F(VariableStatisticsPlotTest, FollowsParametersAndGradients) {
  for (Device device : testing::test_devices()) {
    model_.w.array().fill(0);
    Points data, gradients;
    training::Trainer trainer = make_trainer(5, device, {.filename = "statistics.svg"});
    trainer.extend(
        [&](training::Trainer& t) {
          auto iteration = static_cast<double>(t.updater().iteration());
          data.emplace_back(iteration, model_.w.item<float>());
          gradients.emplace_back(iteration, model_.w.grad().item<float>());
        },
        {.priority = -1});
    trainer.run();
    Curves curves = curves_of(trainer);
    EXPECT_EQ(curves["data/mean"], data);
    EXPECT_EQ(curves["grad/mean"], gradients);
    EXPECT_EQ(curves["grad/percentile/50"], gradients);
    for (auto [iteration, value] : curves["data/std"]) EXPECT_EQ(value, 0);
    EXPECT_EQ(curves.all.size(), 2u * (2 + 9));
    std::string svg = testing::read_file(folder_ / "out/statistics.svg");
    EXPECT_THAT(svg, AllOf(HasSubstr(">data: mean<"), HasSubstr(">grad: percentile<"),
                           HasSubstr(">99.87%<"), Not(HasSubstr("nan"))));
  }
}

TEST_F(VariableStatisticsPlotTest, TakesAllElementsTogether) {
  for (Device device : testing::test_devices()) {
    Variable a(xp::array({{1.f, 2.f}, {3.f, 4.f}}).to(device).transpose()),
        b(xp::array({10.f}).to(device)), none_of_it(xp::ones({0}, float32, device));
    a.set_grad(xp::ones({2, 2}, float32, device));
    iterators::SerialIterator iterator(testing::line_data(2), 2);
    training::Trainer trainer(training::StandardUpdater(iterator, optimizer_), {1, "iteration"},
                              folder_ / "out");
    trainer.extend(extensions::VariableStatisticsPlot(
        Variables{a, b, none_of_it}, {.plot_std = false, .percentile_sigmas = {0, 50, 100}}));
    trainer.run();
    Curves curves = curves_of(trainer);
    auto only = [&](const char* name) { return curves[name].at(0).second; };
    EXPECT_EQ(only("data/mean"), 4);
    EXPECT_EQ(only("data/percentile/0"), 1);
    EXPECT_EQ(only("data/percentile/50"), 3);
    EXPECT_EQ(only("data/percentile/100"), 10);
    EXPECT_EQ(only("grad/mean"), 1);
    EXPECT_FALSE(curves.all.contains("data/std"));
  }
}

TEST_F(VariableStatisticsPlotTest, LongCurvesAreThinnedOut) {
  training::Trainer trainer = make_trainer(50, cpu(),
                                           {.max_sample_size = 6,
                                            .report_grad = false,
                                            .plot_std = false,
                                            .percentile_sigmas = {},
                                            .trigger = {25, "iteration"}});
  trainer.run();
  std::vector<double> iterations;
  for (auto [iteration, value] : curves_of(trainer)["data/mean"]) iterations.push_back(iteration);
  EXPECT_THAT(iterations, ElementsAre(8, 16, 24, 32, 40, 48));
}

TEST_F(VariableStatisticsPlotTest, GoesOnFromAFile) {
  auto curves_after = [&](int cut) {
    model_.w.array().fill(0);
    extensions::VariableStatisticsPlotOptions options{.max_sample_size = 4};
    if (cut == 0) {
      training::Trainer whole = make_trainer(9, cpu(), options);
      whole.run();
      return curves_of(whole).all;
    }
    training::Trainer first = make_trainer(cut, cpu(), options);
    first.run();
    serializers::save_npz(folder_ / "cut.npz", first);
    training::Trainer rest = make_trainer(9, cpu(), options);
    serializers::load_npz(folder_ / "cut.npz", rest);
    rest.run();
    return curves_of(rest).all;
  };
  nlohmann::json whole = curves_after(0);
  EXPECT_EQ(curves_after(3), whole);
  EXPECT_EQ(curves_after(6), whole);
}

TEST_F(VariableStatisticsPlotTest, WaitsOnlyToDraw) {
  for (Device device : testing::test_devices()) {
    training::Trainer trainer = make_trainer(7, device, {.trigger = {4, "iteration"}});
    std::int64_t waits = 0;
    trainer.extend([&](training::Trainer&) { waits = cuda::sync_count(); },
                   {.name = "before", .priority = training::kPriorityWriter});
    trainer.extend(
        [&](training::Trainer& t) {
          if (t.updater().iteration() == 4) return;
          EXPECT_EQ(cuda::sync_count(), waits) << t.updater().iteration();
        },
        {.name = "after", .priority = -1});
    trainer.run();
  }
}

TEST_F(VariableStatisticsPlotTest, BadArguments) {
  using extensions::VariableStatisticsPlot;
  auto fault = [&](const extensions::VariableStatisticsPlotOptions& options) {
    return testing::thrown<ValueError>([&] { VariableStatisticsPlot plot(model_, options); });
  };
  EXPECT_THAT(fault({.filename = "a.jpg"}), HasSubstr("a.jpg"));
  EXPECT_THAT(fault({.max_sample_size = 1}), HasSubstr("2 or more"));
  EXPECT_THAT(fault({.percentile_sigmas = {101}}), HasSubstr("101"));
  EXPECT_THAT(fault({.report_data = false, .report_grad = false}), HasSubstr("nothing to report"));
  EXPECT_THAT(fault({.plot_mean = false, .plot_std = false, .percentile_sigmas = {}}),
              HasSubstr("nothing to plot"));
  EXPECT_THROW(VariableStatisticsPlot(Variables{}), ValueError);
}

}  // namespace
}  // namespace rensa

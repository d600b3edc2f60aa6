// Charts: ticks and what is drawn; curves that an extension draws, also in a run that goes on.
#include "rensa/training/plot.h"

#include <gmock/gmock.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

TEST(PlotTest, TicksAreRound) {
  struct Case {
    double low, high;
    int most;
    bool log;
    std::vector<double> expected;
  };
  const std::vector<Case> cases = {
      {0, 10, 5, false, {0, 2, 4, 6, 8, 10}},
      {0.13, 0.87, 5, false, {0.2, 0.4, 0.6, 0.8}},
      {-3, 4, 4, false, {-2, 0, 2, 4}},
      {1e-7, 9e-7, 4, false, {2e-7, 4e-7, 6e-7, 8e-7}},
      {100, 2300, 6, false, {500, 1000, 1500, 2000}},
      {0.001, 1000, 8, true, {0.001, 0.01, 0.1, 1, 10, 100, 1000}},
      {1e-10, 1e10, 5, true, {1e-10, 1e-6, 1e-2, 1e2, 1e6, 1e10}},
      {0.03, 0.6, 8, true, {0.05, 0.1, 0.2, 0.5}},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(detail::ticks(c.low, c.high, c.most, c.log),
                Pointwise(::testing::DoubleEq(), c.expected))
        << c.low << " to " << c.high;
  }
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(PlotTest, LinesGapsLabelsAndTheLegend) {
  std::vector<PlotSeries> series = {{"a <b>", {{1, 2}, {2, 3}, {3, NAN}, {4, 1}, {5, 2}}},
                                    {"none", {}}};
  std::string svg =
      plot(series, PictureFormat::svg, {.title = "T & t", .x_label = "epoch", .y_label = "loss"});
  EXPECT_THAT(svg, AllOf(HasSubstr("a &lt;b&gt;"), HasSubstr(">none<"), HasSubstr("T &amp; t"),
                         HasSubstr(">epoch<"), HasSubstr(">loss<"), Not(HasSubstr("nan"))));
  EXPECT_EQ(count(svg, "<path"), 1U);
  std::size_t begin = svg.find("<path d=\"") + 9;
  std::string path = svg.substr(begin, svg.find('"', begin) - begin);
  EXPECT_EQ(count(path, "M"), 2U) << path;  // a gap where y is no number
  EXPECT_EQ(count(path, "L"), 2U) << path;
  EXPECT_EQ(count(svg, "<circle"), 4U);
  EXPECT_EQ(count(plot(series, PictureFormat::svg, {.markers = false}), "<circle"), 0U);
  EXPECT_GT(count(svg, "#e0e0e0"),
            count(plot(series, PictureFormat::svg, {.grid = false}), "#e0e0e0"));
}

TEST(PlotTest, AxesGoAsFarAsTheirLimits) {
  std::vector<PlotSeries> series = {{"", {{-1, 2}, {1, 3}, {2, 4}, {3, 90}}}};
  std::string svg = plot(series, PictureFormat::svg, {.x_limits = {{0, 10}}, .y_limits = {{0, 5}}});
  EXPECT_EQ(count(svg, "<circle"), 2u) << "the first and the last point are beyond";
  EXPECT_THAT(svg, AllOf(HasSubstr(">10</text>"), HasSubstr(">5</text>"), Not(HasSubstr(">-"))));
  std::string empty = plot({}, PictureFormat::svg, {.x_limits = {{0, 20}}});
  EXPECT_THAT(empty, AllOf(HasSubstr(">0</text>"), HasSubstr(">20</text>")));
  std::string log = plot(series, PictureFormat::svg, {.log_y = true, .y_limits = {{0.1, 100}}});
  EXPECT_THAT(log, AllOf(HasSubstr(">0.1</text>"), HasSubstr(">100</text>")));
  EXPECT_EQ(count(log, "<circle"), 4u);
  auto refused = [&](const PlotOptions& options) {
    EXPECT_THAT(testing::thrown<ValueError>([&] { plot(series, PictureFormat::svg, options); }),
                HasSubstr("_limits of"));
  };
  refused({.x_limits = {{1, 1}}});
  refused({.y_limits = {{2, 1}}});
  refused({.x_limits = {{0, NAN}}});
  refused({.log_x = true, .x_limits = {{0, 1}}});
}

TEST(PlotTest, LogarithmsLeaveOutWhatIsNotPositive) {
  std::vector<PlotSeries> series = {{"a", {{1, 0.01}, {2, 0}, {3, 100}}}};
  std::string svg = plot(series, PictureFormat::svg, {.log_y = true});
  EXPECT_EQ(count(svg, "<circle"), 2U);
  EXPECT_THAT(svg, HasSubstr(">0.1<"));
}

TEST(PlotTest, NothingAndOnePointHaveAxesToo) {
  for (bool log : {false, true}) {
    EXPECT_THAT(plot({}, PictureFormat::svg, {.log_x = log, .log_y = log}), HasSubstr("</svg>"));
    std::string one = plot({{"a", {{3, 7}}}}, PictureFormat::svg, {.log_x = log, .log_y = log});
    EXPECT_EQ(count(one, "<circle"), 1U);
    EXPECT_THAT(one, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  }
  EXPECT_THROW(plot({}, PictureFormat::svg, {.width = 100}), ValueError);
}

TEST(Plot, SeveralChartsStandInAGrid) {
  PlotPanel small{{{"a", {{0, 1}, {1, 2}}}}, {.title = "one", .width = 300, .height = 200}};
  PlotPanel high{{}, {.title = "two", .width = 300, .height = 250}};
  std::string svg = plot_grid({small, high, small}, 2, PictureFormat::svg);
  EXPECT_THAT(svg, AllOf(HasSubstr(" width=\"600\" height=\"450\""),
                         HasSubstr(" x=\"300\" y=\"0\" width=\"300\" height=\"250\""),
                         HasSubstr(" x=\"0\" y=\"250\" width=\"300\" height=\"200\"")));
  EXPECT_EQ(count(svg, "<svg "), 4U);
  EXPECT_EQ(count(svg, "</svg>"), 4U);
  EXPECT_EQ(count(svg, ">one<"), 2U);
  EXPECT_THROW(plot_grid({small}, 0, PictureFormat::svg), ValueError);
  EXPECT_THROW(plot_grid({{{}, {.width = 10}}}, 1, PictureFormat::svg), ValueError);
}

class PlotReportTest : public ::testing::Test {
 protected:
  PlotReportTest() { optimizer_.setup(model_); }
  training::Trainer make_trainer(int iterations) {
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    training::Trainer trainer(training::StandardUpdater(iterator, optimizer_),
                              {iterations, "iteration"}, folder_ / "out");
    trainer.extend(
        [](training::Trainer& t) {
          t.observation()["value"] = xp::array(static_cast<double>(t.updater().iteration()), cpu());
        },
        {.name = "value", .priority = training::kPriorityWriter});
    trainer.extend(extensions::PlotReport(
        {"value", "never"},
        {.x_key = "epoch", .filename = filename_, .postprocess = [this](auto& s) { drawn_ = s; }}));
    return trainer;
  }
  testing::Line model_;
  optimizers::SGD optimizer_{0.01};
  testing::TemporaryFolder folder_;
  std::vector<PlotSeries> drawn_;
  std::string filename_ = "plot.svg";
};

TEST_F(PlotReportTest, DrawsTheMeansOfEachInterval) {
  make_trainer(7).run();
  ASSERT_EQ(drawn_.size(), 1U);
  EXPECT_EQ(drawn_[0].name, "value");
  EXPECT_THAT(drawn_[0].points,
              ElementsAre(std::pair(1., 1.5), std::pair(2., 3.5), std::pair(3., 5.5)));
  std::string svg = testing::read_file(folder_ / "out/plot.svg");
  EXPECT_THAT(svg, AllOf(HasSubstr(">value<"), HasSubstr(">epoch<")));
}

TEST_F(PlotReportTest, GoesOnFromAFile) {
  for (int cut : {2, 3}) {
    training::Trainer first = make_trainer(cut), rest = make_trainer(7);
    first.run();
    serializers::save_npz(folder_ / "cut.npz", first);
    serializers::load_npz(folder_ / "cut.npz", rest);
    rest.run();
    EXPECT_THAT(drawn_[0].points,
                ElementsAre(std::pair(1., 1.5), std::pair(2., 3.5), std::pair(3., 5.5)));
  }
}

TEST_F(PlotReportTest, GoesOnWithOtherPictures) {
  training::Trainer first = make_trainer(3);
  first.run();
  serializers::save_npz(folder_ / "cut.npz", first);
  filename_ = "plot.png";
  training::Trainer rest = make_trainer(7);
  serializers::load_npz(folder_ / "cut.npz", rest);
  rest.run();
  EXPECT_EQ(drawn_[0].points.size(), 3U);
  EXPECT_EQ(testing::read_file(folder_ / "out/plot.png").substr(1, 3), "PNG");
}

TEST_F(PlotReportTest, BadArguments) {
  EXPECT_THROW(extensions::PlotReport({}), ValueError);
  EXPECT_THAT(testing::thrown<ValueError>(
                  [] { extensions::PlotReport report({"a"}, {.filename = "a.jpg"}); }),
              HasSubstr("a.jpg"));
}

}  // namespace
}  // namespace rensa

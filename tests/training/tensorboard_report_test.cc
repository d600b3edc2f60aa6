// TensorBoardReport: means, histograms, runs that go on, files that cannot be written.
#include <gmock/gmock.h>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/file_size_limit.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/event_file.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using extensions::TensorBoardReport;
using extensions::TensorBoardReportOptions;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Message;

/// Fields of Event and Summary.Value.
constexpr int kStep = 2, kSummary = 5, kLog = 7, kTag = 1, kSimpleValue = 2, kHisto = 5;

struct Scalar {
  std::string tag;
  std::int64_t step;
  float value;
  bool operator==(const Scalar&) const = default;
};

class TensorBoardReportTest : public ::testing::Test {
 protected:
  TensorBoardReportTest() { optimizer_.setup(model_); }
  Trainer make_trainer(int iterations, TensorBoardReportOptions options = {},
                       Device device = cpu()) {
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    Trainer trainer(StandardUpdater(iterator, optimizer_, {.device = device}),
                    {iterations, "iteration"}, out_);
    trainer.extend(TensorBoardReport(std::move(options)));
    return trainer;
  }
  std::vector<Message> events(std::size_t file = 0) const {
    return testing::read_events(testing::event_files(out_).at(file));
  }
  std::vector<Scalar> scalars(std::size_t file = 0) const {
    std::vector<Scalar> found;
    for (const Message& event : events(file)) {
      if (!event.has(kSummary)) continue;
      Message value = event.message(kSummary).message(1);
      if (!value.has(kSimpleValue)) continue;
      found.push_back({value.text(kTag), event.integer(kStep), value.real(kSimpleValue)});
    }
    return found;
  }
  /// "tag@step" of each histogram.
  std::vector<std::string> histograms() const {
    std::vector<std::string> found;
    for (const Message& event : events()) {
      if (!event.has(kSummary)) continue;
      Message value = event.message(kSummary).message(1);
      if (!value.has(kHisto)) continue;
      found.push_back(value.text(kTag) + "@" + std::to_string(event.integer(kStep)));
    }
    return found;
  }
  testing::Line model_;
  optimizers::SGD optimizer_{0.01};
  testing::TemporaryFolder folder_;
  std::string out_ = folder_ / "out";
};

TEST_F(TensorBoardReportTest, WritesTheMeansThatLogReportWrites) {
  for (Device device : testing::test_devices()) {
    out_ = folder_ / device.str();
    Trainer trainer = make_trainer(10, {.trigger = {3, "iteration"}}, device);
    trainer.extend(extensions::LogReport({.trigger = {3, "iteration"}}));
    trainer.extend(
        [](Trainer& t) {
          if (t.updater().iteration() == 4) report({{"rare", 5}});
        },
        {.priority = kPriorityWriter});
    trainer.run();
    std::vector<Scalar> expected;
    for (const auto& entry :
         dynamic_cast<extensions::LogReport&>(trainer.get_extension("LogReport")).log()) {
      for (auto [key, mean] : entry.values) {
        expected.push_back({key, entry.iteration, static_cast<float>(mean)});
      }
    }
    EXPECT_EQ(scalars(), expected);
    EXPECT_EQ(expected.size(), 4u);
    EXPECT_TRUE(histograms().empty());
  }
}

TEST_F(TensorBoardReportTest, WritesTheKeysThatAreAskedFor) {
  Trainer trainer =
      make_trainer(2, {.keys = {"main/loss", "none"}, .trigger = {1, "iteration"}, .folder = "b"});
  trainer.extend([](Trainer&) { report({{"other", 5}}); }, {.priority = kPriorityWriter});
  ::testing::internal::CaptureStderr();
  trainer.run();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("TensorBoardReport"), HasSubstr("\"none\"")));
  out_ += "/b";
  std::vector<Scalar> found = scalars();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].tag, "main/loss");
  EXPECT_EQ(found[1].step, 2);
}

TEST_F(TensorBoardReportTest, WritesHistogramsWhenTheirTriggerFires) {
  for (Device device : testing::test_devices()) {
    out_ = folder_ / device.str();
    make_trainer(5, {.histogram_trigger = {2, "iteration"}}, device).run();
    EXPECT_THAT(histograms(), ElementsAre("w/data@2", "w/grad@2", "w/data@4", "w/grad@4"));
    for (const Message& event : events()) {
      if (event.integer(kStep) != 4) continue;
      Message value = event.message(kSummary).message(1);
      if (value.has(kHisto)) {
        EXPECT_EQ(value.message(kHisto).real64(3), 1);
      }
    }
    out_ += "_data";
    make_trainer(2, {.histogram_trigger = {2, "iteration"}, .report_grads = false}, device).run();
    EXPECT_THAT(histograms(), ElementsAre("w/data@2"));
  }
}

TEST_F(TensorBoardReportTest, ARunThatGoesOnGoesOnInANewFile) {
  TensorBoardReportOptions options{.trigger = {4, "iteration"},
                                   .histogram_trigger = {3, "iteration"}};
  out_ = folder_ / "whole";
  make_trainer(9, options).run();
  std::vector<Scalar> whole = scalars();
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_THAT(histograms(),
              ElementsAre("w/data@3", "w/grad@3", "w/data@6", "w/grad@6", "w/data@9", "w/grad@9"));
  model_.w.array().fill(0);
  out_ = folder_ / "first";
  Trainer first = make_trainer(2, options);
  first.run();
  serializers::save_npz(folder_ / "cut.npz", first);
  EXPECT_EQ(events().size(), 1u);
  out_ = folder_ / "rest";
  Trainer rest = make_trainer(9, options);
  serializers::load_npz(folder_ / "cut.npz", rest);
  rest.run();
  EXPECT_EQ(scalars(), whole);
  EXPECT_EQ(histograms().size(), 6u);
  Message restart = events().at(1);
  EXPECT_EQ(restart.message(kLog).integer(1), 1);
  EXPECT_EQ(restart.integer(kStep), 3);
}

TEST_F(TensorBoardReportTest, OthersMayWriteIntoItsFile) {
  Trainer trainer = make_trainer(2, {.trigger = {1, "iteration"}});
  auto& report = dynamic_cast<TensorBoardReport&>(trainer.get_extension("TensorBoardReport"));
  EXPECT_THROW(report.writer(), ValueError);
  trainer.extend(
      [&](Trainer& t) { report.writer().add_text("note", "seen", t.updater().iteration()); });
  trainer.run();
  EXPECT_EQ(events().size(), 1u + 2 + 2);
  EXPECT_THROW(report.writer(), ValueError);
}

TEST_F(TensorBoardReportTest, AFolderThatCannotBeWrittenIsToldBeforeTheFirstIteration) {
  testing::TemporaryFolder folder;
  std::filesystem::create_directories(out_);
  testing::write_file(folder_ / "out/file", "x");
  Trainer trainer = make_trainer(2, {.folder = "file"});
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(testing::thrown<SerializationError>([&] { trainer.run(); }),
              AllOf(HasSubstr("TensorBoardReport"), HasSubstr("out/file")));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(trainer.updater().iteration(), 0);
}

TEST_F(TensorBoardReportTest, AFullDiskEndsTheRun) {
  Trainer trainer = make_trainer(5, {.trigger = {1, "iteration"}});
  std::optional<testing::FileSizeLimit> limit;
  trainer.extend(
      [&](Trainer& t) {
        if (t.updater().iteration() == 3) limit.emplace(1);
      },
      {.priority = kPriorityWriter});
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(testing::thrown<SerializationError>([&] { trainer.run(); }),
              AllOf(HasSubstr("TensorBoardReport"), HasSubstr("events.out.tfevents.")));
  limit.reset();
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(trainer.updater().iteration(), 3);
  EXPECT_EQ(scalars().size(), 2u);
}

TEST_F(TensorBoardReportTest, WaitsOnlyToWrite) {
  for (Device device : testing::test_devices()) {
    out_ = folder_ / device.str();
    Trainer trainer = make_trainer(7, {.trigger = {4, "iteration"}}, device);
    std::int64_t waits = 0;
    trainer.extend([&](Trainer&) { waits = cuda::sync_count(); },
                   {.name = "before", .priority = kPriorityWriter});
    trainer.extend(
        [&](Trainer& t) {
          if (t.updater().iteration() == 4) return;
          EXPECT_EQ(cuda::sync_count(), waits) << t.updater().iteration();
        },
        {.name = "after", .priority = -1});
    trainer.run();
  }
}

TEST_F(TensorBoardReportTest, TheRunOfTheDocumentation) {
  iterators::SerialIterator iterator(testing::line_data(2), 1);
  Trainer trainer(StandardUpdater(iterator, optimizer_), {200, "iteration"}, out_);
  trainer.extend(
      TensorBoardReport({.trigger = {100, "iteration"}, .histogram_trigger = {1, "epoch"}}));
  trainer.run();
  EXPECT_EQ(scalars().size(), 2u);
  EXPECT_EQ(histograms().size(), 200u);
}

TEST_F(TensorBoardReportTest, NeedsATrigger) {
  EXPECT_THROW(TensorBoardReport({.trigger = {}}), ValueError);
}

}  // namespace
}  // namespace rensa::training

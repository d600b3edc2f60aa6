// SummaryWriter: event files, read back record by record.
#include "rensa/training/summary_writer.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <limits>
#include <thread>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/data/images/png.h"
#include "rensa/rensa.h"
#include "rensa/training/summary_writer_internal.h"
#include "tests/file_size_limit.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/event_file.h"

namespace rensa::training {
namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::Message;
using testing::read_events;
using testing::thrown;

/// Fields of Event, Summary.Value and NodeDef.
constexpr int kWallTime = 1, kStep = 2, kVersion = 3, kGraphDef = 4, kSummary = 5, kLog = 7;
constexpr int kTag = 1, kSimpleValue = 2, kImage = 4, kHisto = 5, kTensor = 8, kMetadata = 9;
constexpr int kName = 1, kOp = 2, kInput = 3, kDevice = 4, kAttributes = 5;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class SummaryWriterTest : public ::testing::Test {
 protected:
  /// The values behind the file's first record.
  static std::vector<Message> values_of(const SummaryWriter& writer) {
    writer.flush();
    std::vector<Message> values, events = read_events(writer.path());
    for (std::size_t i = 1; i < events.size(); ++i) {
      values.push_back(events[i].message(kSummary).message(1));
    }
    return values;
  }
  Message histogram_of(const Array& values) {
    SummaryWriter writer(folder_.str());
    writer.add_histogram("h", values, 3);
    Message value = values_of(writer).at(0);
    EXPECT_EQ(value.text(kTag), "h");
    return value.message(kHisto);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(SummaryWriterTest, AFileBeginsWithItsVersion) {
  SummaryWriter writer(folder_ / "a/b", {.filename_suffix = ".mine"});
  auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  EXPECT_EQ(testing::event_files(folder_ / "a/b"), std::vector<std::string>{writer.path()});
  std::string name = std::filesystem::path(writer.path()).filename();
  EXPECT_NEAR(std::stod(name.substr("events.out.tfevents."s.size(), 10)), now.count(), 5);
  EXPECT_THAT(name, EndsWith(".mine"));
  std::vector<Message> events = read_events(writer.path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text(kVersion), "brain.Event:2");
  EXPECT_NEAR(events[0].real64(kWallTime), now.count(), 5);
  EXPECT_FALSE(events[0].has(kLog));
  EXPECT_NE(SummaryWriter(folder_ / "a/b").path(), writer.path());
}

TEST_F(SummaryWriterTest, Scalars) {
  for (Device device : testing::test_devices()) {
    SummaryWriter writer(folder_.str());
    writer.add_scalar("train/loss", 0.1);
    writer.add_scalar("train/loss", 3, std::int64_t{1} << 40);
    writer.add_scalar("bad\xff", xp::array({2.5f}, device), -1);
    writer.add_scalar("nan", std::nan(""), 7);
    std::vector<Message> values = values_of(writer), events = read_events(writer.path());
    ASSERT_EQ(values.size(), 4u);
    EXPECT_EQ(values[0].text(kTag), "train/loss");
    EXPECT_EQ(values[0].real(kSimpleValue), 0.1f);
    EXPECT_EQ(values[1].real(kSimpleValue), 3);
    EXPECT_EQ(values[2].text(kTag), "bad\uFFFD");
    EXPECT_EQ(values[2].real(kSimpleValue), 2.5f);
    EXPECT_TRUE(std::isnan(values[3].real(kSimpleValue)));
    EXPECT_EQ(events[1].integer(kStep), 0);
    EXPECT_EQ(events[2].integer(kStep), std::int64_t{1} << 40);
    EXPECT_EQ(events[3].integer(kStep), -1);
    EXPECT_THROW(writer.add_scalar("two", xp::ones({2}, float32, device)), ShapeError);
  }
}

TEST_F(SummaryWriterTest, HistogramsCountEachElementInItsBucket) {
  std::vector<double> x = {0, 0.5, 0.5, -2, -0.0, 3e-13, -3e-13, 1, 7e19, 1e25, -1e300, 1e-12};
  for (Device device : testing::test_devices()) {
    Message histogram = histogram_of(xp::array(x, device).reshape({3, 4}));
    EXPECT_EQ(histogram.real64(1), -1e300);
    EXPECT_EQ(histogram.real64(2), 1e25);
    EXPECT_EQ(histogram.real64(3), 12);
    EXPECT_EQ(histogram.real64(4), -1e300);
    EXPECT_EQ(histogram.real64(5), kInfinity);
    auto limits = histogram.numbers<double>(6), buckets = histogram.numbers<double>(7);
    ASSERT_EQ(limits.size(), buckets.size());
    EXPECT_EQ(limits.front(), -std::numeric_limits<double>::max());
    EXPECT_EQ(limits.back(), std::numeric_limits<double>::max());
    for (std::size_t i = 1; i < limits.size(); ++i) {
      auto inside = [&](double v) { return v >= limits[i - 1] && v < limits[i]; };
      EXPECT_EQ(buckets[i], std::count_if(x.begin(), x.end(), inside)) << limits[i];
    }
  }
}

TEST_F(SummaryWriterTest, HistogramsBeginAndEndWithTheElements) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16, float32, float64, int32, uint8}) {
      Message histogram = histogram_of(xp::array({1, 2, 2, 3}, device).astype(dtype));
      EXPECT_EQ(histogram.real64(1), 1);
      EXPECT_EQ(histogram.real64(2), 3);
      EXPECT_EQ(histogram.real64(3), 4);
      EXPECT_EQ(histogram.real64(4), 8);
      EXPECT_EQ(histogram.real64(5), 18);
      auto limits = histogram.numbers<double>(6), buckets = histogram.numbers<double>(7);
      EXPECT_EQ(buckets.front(), 0);
      EXPECT_EQ(buckets[1], 1);
      EXPECT_EQ(buckets.back(), 1);
      EXPECT_TRUE(limits[0] <= 1 && limits[0] > 0.9) << limits[0];
      EXPECT_TRUE(limits.back() > 3 && limits.back() < 3.4) << limits.back();
      EXPECT_NEAR(limits[2] / limits[1], 1.1, 1e-12);
    }
  }
}

TEST_F(SummaryWriterTest, HistogramsLeaveOutWhatIsNotFinite) {
  for (Device device : testing::test_devices()) {
    Message some =
        histogram_of(xp::array({1.f, std::nanf(""), 2.f, HUGE_VALF, -HUGE_VALF}, device));
    EXPECT_EQ(some.real64(1), 1);
    EXPECT_EQ(some.real64(2), 2);
    EXPECT_EQ(some.real64(3), 2);
    EXPECT_EQ(some.real64(4), 3);
    EXPECT_EQ(some.real64(5), 5);
    for (const Array& none :
         {xp::array({std::nan("")}, device), xp::ones({0, 3}, float32, device)}) {
      Message empty = histogram_of(none);
      for (int field = 1; field <= 5; ++field) EXPECT_EQ(empty.real64(field), 0);
      EXPECT_THAT(empty.numbers<double>(6), ElementsAre(0));
      EXPECT_THAT(empty.numbers<double>(7), ElementsAre(0));
    }
    EXPECT_THAT(thrown<DtypeError>([&] { histogram_of(xp::ones({2}, complex64, device)); }),
                HasSubstr("add_histogram"));
  }
}

TEST_F(SummaryWriterTest, Images) {
  for (Device device : testing::test_devices()) {
    SummaryWriter writer(folder_.str());
    Array rows = xp::array({{{0, 10, 255}, {1, 2, 3}}}).astype(uint8);  // 1 x 2 pixels of RGB
    Array floats = rows.to(device).astype(float32) / 255.f;
    writer.add_image("hwc", rows.to(device), 1, "HWC");
    writer.add_image("chw", xp::transpose(rows.to(device), {2, 0, 1}), 2);
    writer.add_image("float", xp::transpose(floats, {2, 0, 1}).astype(float64), 3);
    writer.add_image("clipped", xp::array({{-1.f, 0.5f, 2.f, std::nanf("")}}, device), 4, "HW");
    std::vector<Message> values = values_of(writer);
    ASSERT_EQ(values.size(), 4u);
    for (int i = 0; i < 3; ++i) {
      Message image = values[static_cast<std::size_t>(i)].message(kImage);
      EXPECT_EQ(image.integer(1), 1);
      EXPECT_EQ(image.integer(2), 2);
      EXPECT_EQ(image.integer(3), 3);
      EXPECT_EQ(image.text(4), images::encode_png(rows)) << i;
    }
    Array gray = xp::array({0, 128, 255, 0}).astype(uint8).reshape({1, 4, 1});
    EXPECT_EQ(values[3].message(kImage).text(4), images::encode_png(gray));
    auto add = [&](const Shape& shape, const std::string& format, Dtype dtype = float32) {
      writer.add_image("bad", xp::zeros(shape, dtype, device), 0, format);
    };
    EXPECT_THAT(thrown<ValueError>([&] { add({2, 2}, "NCHW"); }), HasSubstr("\"NCHW\""));
    EXPECT_THAT(thrown<ShapeError>([&] { add({2, 2}, "CHW"); }), HasSubstr("(2, 2)"));
    EXPECT_THROW(add({5, 2, 2}, "CHW"), ShapeError);
    EXPECT_THROW(add({0, 2, 2}, "CHW"), ShapeError);
    EXPECT_THROW(add({3, 2, 0}, "CHW"), ShapeError);
    EXPECT_THAT(thrown<DtypeError>([&] { add({1, 2, 2}, "CHW", int32); }), HasSubstr("uint8"));
  }
}

TEST_F(SummaryWriterTest, Texts) {
  SummaryWriter writer(folder_.str());
  writer.add_text("note", "**bold** \u00e9\xff", 5);
  Message value = values_of(writer).at(0), tensor = value.message(kTensor);
  EXPECT_EQ(value.text(kTag), "note");
  EXPECT_EQ(value.message(kMetadata).message(1).text(1), "text");
  EXPECT_EQ(tensor.integer(1), 7);
  EXPECT_EQ(tensor.message(2).message(2).integer(1), 1);
  EXPECT_EQ(tensor.text(8), "**bold** \u00e9\uFFFD");
}

/// A node's attribute.
Message attribute(const Message& node, const std::string& key) {
  for (std::size_t i = 0; i < node.count(kAttributes); ++i) {
    Message entry = node.message(kAttributes, i);
    if (entry.text(1) == key) return entry.message(2);
  }
  throw std::runtime_error("no attribute " + key);
}

TEST_F(SummaryWriterTest, Graphs) {
  for (Device device : testing::test_devices()) {
    SummaryWriter writer(folder_.str());
    Variable x(xp::ones({2, 3}, float32, device)), W(xp::ones({4, 3}, float32, device));
    Variable h = F::relu(F::linear(x, W));
    Variables parts = F::split_axis(h, 2, 1);
    Variable y = F::relu(parts[1]) + F::relu(parts[0]);
    computational_graph::GraphOptions options;
    options.names = {{"/l1/W", W}, {"the input", x}};
    writer.add_graph(computational_graph::build_computational_graph({y}, options));
    writer.flush();
    Message graph(read_events(writer.path()).at(1).text(kGraphDef));
    std::map<std::string, Message> nodes;
    for (std::size_t i = 0; i < graph.count(1); ++i) {
      Message node = graph.message(1, i);
      EXPECT_TRUE(nodes.emplace(node.text(kName), node).second) << node.text(kName);
      EXPECT_EQ(node.text(kDevice), device.is_cpu() ? "/device:CPU:0" : "/device:GPU:0");
    }
    std::vector<std::string> names, fed;
    for (const auto& [name, node] : nodes) {
      names.push_back(name);
      for (std::size_t i = 0; i < node.count(kInput); ++i) fed.push_back(node.text(kInput, i));
    }
    std::sort(fed.begin(), fed.end());
    EXPECT_THAT(names, ElementsAre("add", "l1/W", "linear", "relu", "relu_1", "relu_2",
                                   "split_axis", "the_input"));
    EXPECT_THAT(fed, ElementsAre("l1/W", "linear", "relu", "relu_1", "relu_2", "split_axis",
                                 "split_axis:1", "the_input"));
    EXPECT_EQ(nodes.at("l1/W").text(kOp), "Variable");
    EXPECT_EQ(nodes.at("relu_2").text(kOp), "relu");
    EXPECT_EQ(attribute(nodes.at("l1/W"), "dtype").integer(6), 1);
    Message shapes = attribute(nodes.at("split_axis"), "_output_shapes").message(1);
    ASSERT_EQ(shapes.count(7), 2u);
    EXPECT_EQ(shapes.message(7, 1).message(2, 0).integer(1), 2);
    EXPECT_EQ(shapes.message(7, 1).message(2, 1).integer(1), 2);
  }
}

TEST_F(SummaryWriterTest, ARunThatGoesOnHidesWhatCameLater) {
  SummaryWriter writer(folder_.str(), {.purge_step = 30});
  std::vector<Message> events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].text(kVersion), "brain.Event:2");
  EXPECT_EQ(events[1].integer(kStep), 30);
  EXPECT_EQ(events[1].message(kLog).integer(1), 1);
}

TEST_F(SummaryWriterTest, WritesWhenFlushedFullOrDue) {
  SummaryWriter writer(folder_.str()), prompt(folder_.str(), {.flush_secs = 0});
  auto records = [](const SummaryWriter& w) { return read_events(w.path()).size(); };
  writer.add_scalar("a", 1), prompt.add_scalar("a", 1);
  EXPECT_EQ(records(writer), 1u);
  EXPECT_EQ(records(prompt), 2u);
  writer.flush();
  EXPECT_EQ(records(writer), 2u);
  writer.add_text("long", std::string(100000, 'x'));
  EXPECT_EQ(records(writer), 3u);
  std::string path;
  {
    SummaryWriter last(folder_.str());
    last.add_scalar("a", 1);
    path = last.path();
  }
  EXPECT_EQ(read_events(path).size(), 2u);
}

TEST_F(SummaryWriterTest, ThreadsMayAddTogether) {
  SummaryWriter writer(folder_.str());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread, writer] {
      for (int i = 0; i < 1000; ++i) writer.add_scalar(std::to_string(thread), i, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, int> counts;
  for (const Message& value : values_of(writer)) {
    EXPECT_EQ(value.real(kSimpleValue), static_cast<float>(counts[value.text(kTag)]++));
  }
  for (int thread = 0; thread < 4; ++thread) EXPECT_EQ(counts[std::to_string(thread)], 1000);
}

TEST_F(SummaryWriterTest, WhatCannotBeWrittenIsToldAndKept) {
  RecordFile full("/dev/full");
  full.add("record");
  EXPECT_THAT(thrown<SerializationError>([&] { full.flush(); }),
              AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
  EXPECT_GT(full.pending(), 0u);
  SummaryWriter writer(folder_.str());
  writer.add_text("long", std::string(10000, 'x'));
  {
    testing::FileSizeLimit limit(1000);
    EXPECT_THAT(thrown<SerializationError>([&] { writer.flush(); }), HasSubstr(writer.path()));
    EXPECT_EQ(read_events(writer.path()).size(), 1u);
  }
  writer.add_scalar("a", 1);
  EXPECT_EQ(values_of(writer).size(), 2u);
}

TEST_F(SummaryWriterTest, TheLastCopyTellsWhatItCouldNotWrite) {
  auto writer = std::make_unique<SummaryWriter>(folder_.str());
  std::string path = writer->path();
  writer->add_text("long", std::string(50000, 'x'));
  ::testing::internal::CaptureStderr();
  {
    testing::FileSizeLimit limit(1000);
    writer.reset();
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(path));
}

TEST_F(SummaryWriterTest, BadArguments) {
  testing::write_file(folder_ / "file", "x");
  EXPECT_THAT(thrown<SerializationError>([&] { SummaryWriter writer(folder_ / "file"); }),
              HasSubstr(folder_ / "file"));
  EXPECT_THAT(thrown<SerializationError>([] { SummaryWriter writer("/proc/none"); }),
              HasSubstr("/proc/none"));
  EXPECT_THAT(
      thrown<ValueError>([&] { SummaryWriter writer(folder_.str(), {.filename_suffix = "a/b"}); }),
      HasSubstr("a/b"));
  EXPECT_THROW(SummaryWriter(folder_.str(), {.flush_secs = -1}), ValueError);
}

TEST_F(SummaryWriterTest, TheLoopOfTheDocumentation) {
  Variable x(xp::ones({2, 3}, float32)), W(xp::ones({4, 3}, float32));
  Variable loss = F::sum(F::linear(x, W));
  Array pixels = xp::zeros({3, 8, 8}, float32);
  SummaryWriter writer(folder_ / "runs");
  writer.add_scalar("train/loss", loss.array(), 100);
  writer.add_histogram("W", W.array(), 100);
  writer.add_image("input", pixels, 100);  // (channels, height, width)
  writer.add_text("note", "the *first* run");
  writer.add_graph(computational_graph::build_computational_graph({loss}));
  writer.flush();
  EXPECT_EQ(read_events(writer.path()).size(), 6u);
}

/// What tests/answers/check_tensorboard.py reads by TensorBoard's own code.
TEST_F(SummaryWriterTest, WritesWhatTensorBoardReads) {
  std::string kept = environment::text("RENSA_TEST_TENSORBOARD_FOLDER").value_or(folder_.str());
  SummaryWriter writer(kept);
  std::ofstream scalars(kept + "/scalars.txt");
  for (int step = 0; step < 5; ++step) {
    double value = std::sin(step) / 3;
    writer.add_scalar("train/loss", value, step);
    scalars << std::setprecision(9) << step << ' ' << static_cast<float>(value) << '\n';
  }
  Array normal = xp::random::normal(0, 2, {3000}), skewed = xp::exp(normal) * 1e-3;
  writer.add_histogram("normal", normal, 1), xp::save(kept + "/normal.npy", normal);
  writer.add_histogram("skewed", skewed, 1), xp::save(kept + "/skewed.npy", skewed);
  Array image = xp::random::uniform(0, 1, {3, 20, 30});
  writer.add_image("image", image, 2), xp::save(kept + "/image.npy", image);
  writer.add_text("note", "a *text*", 3);
  Variable x(xp::ones({2, 3}, float32)), W(xp::ones({4, 3}, float32));
  computational_graph::GraphOptions options;
  options.names = {{"/l1/W", W}, {"x", x}};
  Variable loss = F::sum(F::relu(F::linear(x, W)));
  writer.add_graph(computational_graph::build_computational_graph({loss}, options));
  writer.flush();
  EXPECT_EQ(read_events(writer.path()).size(), 1u + 5 + 2 + 1 + 1 + 1);
}

}  // namespace
}  // namespace rensa::training

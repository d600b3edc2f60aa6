// Timelines: what is recorded, the trace, the picture.
#include "rensa/device/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/trigonometric.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/stream.h"
#include "rensa/device/timeline_ranks.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using timeline::Kind;
using timeline::Record;

std::string contents(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const Record* find(const std::vector<Record>& records, Kind kind, const std::string& name) {
  auto found = std::find_if(records.begin(), records.end(),
                            [&](const Record& r) { return r.kind == kind && r.name == name; });
  return found == records.end() ? nullptr : &*found;
}

Record bar(Kind kind, std::string name, double from_ms, double to_ms, Device device = cpu(),
           std::int64_t row = 1) {
  Record record;
  record.kind = kind;
  record.name = std::move(name);
  record.begin_ns = static_cast<std::int64_t>(from_ms * 1e6);
  record.end_ns = static_cast<std::int64_t>(to_ms * 1e6);
  record.device = device;
  record.row = row;
  return record;
}

TEST(Timeline, RecordsOperationsOfTheHost) {
  testing::TemporaryFolder folder;
  std::string path = folder / "trace.json";
  Array a = xp::ones({300, 300}, float32, cpu());
  std::vector<Record> records;
  {
    auto running = timeline::record(path);
    EXPECT_TRUE(timeline::is_recording());
    EXPECT_THROW(timeline::Timeline(""), ValueError) << "one at a time";
    timeline::Range range("my part");
    Array b = xp::exp(a);
    std::thread elsewhere([&] { xp::matmul(a, a); });
    elsewhere.join();
    {
      timeline::Range inner("a nap");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    records = running.stop();
    EXPECT_FALSE(timeline::is_recording());
    EXPECT_EQ(running.stop().size(), records.size());
    xp::sin(a);
  }
  const Record* exp = find(records, Kind::operation, "exp");
  const Record* matmul = find(records, Kind::operation, "matmul");
  const Record* nap = find(records, Kind::range, "a nap");
  ASSERT_TRUE(exp && matmul && nap);
  EXPECT_FALSE(find(records, Kind::operation, "sin")) << "it came after the end";
  EXPECT_EQ(exp->device, cpu());
  EXPECT_GT(exp->end_ns, exp->begin_ns);
  EXPECT_LE(exp->end_ns, matmul->begin_ns);
  EXPECT_GE(matmul->begin_ns, 0);
  EXPECT_NE(exp->row, matmul->row) << "threads have rows of their own";
  EXPECT_EQ(exp->row, nap->row);
  EXPECT_GE(nap->end_ns - nap->begin_ns, 5'000'000);
  EXPECT_LT(nap->end_ns - nap->begin_ns, 5'000'000'000);

  std::vector<Record> back = timeline::read(path);
  ASSERT_EQ(back.size(), records.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].name, records[i].name);
    EXPECT_EQ(back[i].kind, records[i].kind);
    EXPECT_EQ(back[i].begin_ns, records[i].begin_ns);
    EXPECT_EQ(back[i].end_ns, records[i].end_ns);
    EXPECT_EQ(back[i].row, records[i].row);
  }
}

TEST(Timeline, NothingIsKeptBetweenRecordings) {
  Array a = xp::ones({10}, float32, cpu());
  timeline::Timeline first("");
  xp::exp(a);
  EXPECT_EQ(first.stop().size(), 1u);
  xp::exp(a);
  timeline::Timeline second("");
  xp::sin(a);
  ASSERT_EQ(second.stop().size(), 1u);
  EXPECT_EQ(second.stop()[0].name, "sin");
}

TEST(Timeline, ManyThreadsRecord) {
  timeline::Timeline running("");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      Array a = xp::ones({16}, float32, cpu());
      for (int i = 0; i < 200; ++i) a = a + a;
    });
  }
  for (auto& thread : threads) thread.join();
  const auto& records = running.stop();
  auto adds = std::count_if(records.begin(), records.end(),
                            [](const Record& r) { return r.name == "add"; });
  EXPECT_EQ(adds, 800);
}

TEST(Timeline, NumbersThatNoTraceHasAreRefusedOrLeftOut) {
  testing::TemporaryFolder folder;
  std::string path = folder / "trace.json";
  auto read = [&](const std::string& fields) {
    testing::write_file(path, R"([{"ph": "X", "name": "a", )" + fields + "}]");
    return timeline::read(path);
  };
  EXPECT_EQ(read(R"("ts": 1.5, "dur": 2)")[0].end_ns, 3500);
  for (const char* time : {R"("ts": 1e300)", R"("ts": -1e300)", R"("dur": 9e18)"}) {
    EXPECT_THROW(read(time), SerializationError) << time;
  }
  EXPECT_EQ(read(R"("tid": 1e300, "args": {"bytes": -1e300})")[0].row, 0);
  EXPECT_EQ(read(R"("tid": 18446744073709551615)").size(), 1u);
  testing::write_file(path, R"([{"ph": "M", "name": "process_name", "pid": 1,
                                 "args": {"name": "cuda:99999999999999999999"}},
                                {"ph": "X", "name": "a", "pid": 1}])");
  EXPECT_EQ(timeline::read(path)[0].device, gpu(0));
  EXPECT_THROW(timeline::read(folder.str()), SerializationError);
  EXPECT_THROW(timeline::write({}, folder / "no/trace"), SerializationError);
  EXPECT_THROW(timeline::draw(std::vector<Record>(), folder.str()), SerializationError);
}

TEST(Timeline, ATraceHoldsEverythingOfARecord) {
  testing::TemporaryFolder folder;
  std::string path = folder / "trace.json";
  std::vector<Record> records{bar(Kind::operation, "a \"quoted\"\n\\name\x01", 0, 1),
                              bar(Kind::kernel, "k", 1.5, 2, gpu(1), 7),
                              bar(Kind::copy_to_device, "host to device", 2, 3, gpu(0), 13),
                              bar(Kind::copy_to_host, "device to host", 2, 3, gpu(0), 14),
                              bar(Kind::copy_on_device, "device to device", 2, 3, gpu(0), 14),
                              bar(Kind::memset, "memset", 4, 5, gpu(0), 7),
                              bar(Kind::wait, "wait for a stream", 4, 5, cpu(), 0),
                              bar(Kind::range, "\xc3\xa9t\xc3\xa9", 4, 5)};
  records[1].operation = "matmul";
  records[1].detail = "void k<int>(int*)";
  records[2].bytes = 80'000'000;
  timeline::write(records, path);
  std::vector<Record> back = timeline::read(path);
  ASSERT_EQ(back.size(), records.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].name, records[i].name);
    EXPECT_EQ(back[i].kind, records[i].kind);
    EXPECT_EQ(back[i].device, records[i].device);
    EXPECT_EQ(back[i].row, records[i].row);
    EXPECT_EQ(back[i].begin_ns, records[i].begin_ns);
    EXPECT_EQ(back[i].end_ns, records[i].end_ns);
    EXPECT_EQ(back[i].operation, records[i].operation);
    EXPECT_EQ(back[i].detail, records[i].detail);
    EXPECT_EQ(back[i].bytes, records[i].bytes);
  }
  std::string text = contents(path);
  for (const char* name :
       {"\"host\"", "\"cuda:0\"", "\"cuda:1\"", "\"stream 13\"", "\"thread 1\"", "\"waits\""}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

TEST(Timeline, KernelsOfAStreamThatOverlapStandBesideEachOther) {
  testing::TemporaryFolder folder;
  std::string path = folder / "trace.json";
  std::vector<Record> records{
      bar(Kind::kernel, "first", 0, 2, gpu(0), 7), bar(Kind::kernel, "second", 1.5, 3, gpu(0), 7),
      bar(Kind::kernel, "third", 2, 4, gpu(0), 7), bar(Kind::kernel, "other", 1, 3, gpu(0), 8),
      bar(Kind::operation, "outer", 0, 4),         bar(Kind::operation, "inner", 1, 2)};
  timeline::write(records, path);
  nlohmann::json trace = nlohmann::json::parse(contents(path));
  std::map<std::string, std::int64_t> tids;
  std::map<std::int64_t, double> ends;  // of the GPU's rows
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    std::int64_t tid = tids[event["name"]] = event["tid"];
    if (event["pid"] == 0) continue;
    EXPECT_GE(event["ts"], ends[tid]) << event["name"];
    ends[tid] = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(tids["first"], 7);
  EXPECT_EQ(tids["third"], 7);
  EXPECT_NE(tids["second"], 7);
  EXPECT_EQ(tids["other"], 8);
  EXPECT_EQ(tids["outer"], tids["inner"]) << "what lies within may";
  EXPECT_EQ(count_of(contents(path), "\"stream 7, beside\""), 1);
  for (const Record& record : timeline::read(path)) {
    if (record.device.is_cuda()) {
      EXPECT_EQ(record.row, record.name == "other" ? 8 : 7);
    }
  }
}

TEST(Timeline, BadFilesAreErrors) {
  testing::TemporaryFolder folder;
  auto path = [&](const char* name) { return folder / name; };
  EXPECT_THROW(timeline::read(path("none.json")), SerializationError);
  for (const char* text : {"", "{", "[1,", "{\"traceEvents\": 3}", "{}", "\"x\""}) {
    std::ofstream(path("bad.json")) << text;
    EXPECT_THROW(timeline::read(path("bad.json")), SerializationError) << text;
  }
  std::ofstream(path("odd.json"))
      << "[1, null, {\"ph\": \"X\"}, {\"ph\": \"B\", \"name\": \"b\"}, "
         "{\"ph\": \"X\", \"name\": 7, \"ts\": \"soon\", \"pid\": \"p\", \"args\": []}]";
  EXPECT_EQ(timeline::read(path("odd.json")).size(), 2u) << "another program's, as far as it goes";
  EXPECT_THROW(timeline::write({}, path("no/such/folder.json")), Error);
  EXPECT_THROW(timeline::Timeline(path("no/such/folder.json")), Error);
  EXPECT_FALSE(timeline::is_recording());
  EXPECT_THROW(timeline::draw(std::vector<Record>(), path("no/such/folder.svg")), Error);
}

TEST(Timeline, APictureHasABarARecordAndALegend) {
  testing::TemporaryFolder folder;
  std::string picture = folder / "picture.svg";
  std::vector<Record> records{
      bar(Kind::operation, "add", 0, 4), bar(Kind::operation, "x<y>&\"z\"", 4, 10),
      bar(Kind::range, "inside", 1, 3), bar(Kind::kernel, "elementwise_kernel", 2, 8, gpu(0), 7),
      bar(Kind::copy_to_device, "host to device", 3, 5, gpu(0), 13)};
  records[3].operation = "multiply";
  timeline::draw(records, picture, {.width = 1000, .title = "Two & two"});
  std::string svg = contents(picture);
  EXPECT_EQ(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\""), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_EQ(count_of(svg, "<title>"), 5);
  EXPECT_NE(svg.find(">Two &amp; two<"), std::string::npos);
  EXPECT_NE(svg.find(">x&lt;y&gt;&amp;&quot;z&quot;<"), std::string::npos);
  EXPECT_NE(svg.find(">multiply<"), std::string::npos) << "a kernel shows its operation";
  for (const char* part : {">thread 1<", ">cuda:0 stream 7<", ">cuda:0 stream 13<", ">library<",
                           ">kernel<", ">host to device<", ">range<", ">ms<", ">0<", ">10<"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find(">memset<"), std::string::npos) << "the legend names what is there";
  // The kernel: 2 to 8 of 10 ms on 850 pixels from 130.
  EXPECT_NE(svg.find("<rect x=\"300.00\""), std::string::npos);
  EXPECT_NE(svg.find("width=\"510.00\""), std::string::npos);

  timeline::draw(records, picture, {.from_ms = 5, .to_ms = 9});
  EXPECT_EQ(count_of(contents(picture), "<title>"), 3) << "a part: two operations end before it";
}

TEST(Timeline, APictureOfVeryManyBarsStaysSmall) {
  testing::TemporaryFolder folder;
  std::string picture = folder / "picture.svg";
  std::vector<Record> records;
  for (int i = 0; i < 100'000; ++i) {
    records.push_back(bar(Kind::kernel, "k", i * 0.01, i * 0.01 + 0.005, gpu(0), 7));
  }
  timeline::draw(records, picture);
  EXPECT_LT(contents(picture).size(), 1'000'000u);
  EXPECT_GT(count_of(contents(picture), "<title>"), 1000);
  timeline::draw(std::vector<Record>(), picture);
  EXPECT_EQ(count_of(contents(picture), "<title>"), 0);
}

TEST(Timeline, ATraceBecomesAPicture) {
  testing::TemporaryFolder folder;
  std::string trace = folder / "trace.json";
  std::string picture = folder / "picture.svg";
  {
    auto running = timeline::record(trace);
    xp::exp(xp::ones({1 << 20}, float32, cpu()));  // no bar too short to be drawn by itself
  }
  timeline::draw(trace, picture);
  EXPECT_NE(contents(picture).find("<title>exp: "), std::string::npos);
}

/// Ends the process with status 0 once it has recorded an exp.
void record_by_environment(const std::string& path, const char* rank) {
  setenv("RENSA_TIMELINE", path.c_str(), 1);
  if (rank) {
    for (auto [name, value] :
         {std::pair("RANK", rank), std::pair("WORLD_SIZE", "2"),
          std::pair("MASTER_ADDR", "127.0.0.1"), std::pair("MASTER_PORT", "9")})
      setenv(name, value, 1);
  }
  Array a = xp::exp(xp::ones({100}, float32, cpu()));
  std::exit(a.size() == 100 ? 0 : 1);
}

TEST(TimelineDeathTest, TheEnvironmentRecordsAWholeProgram) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process that has launched nothing
  testing::TemporaryFolder folder;
  // The other process runs this test again: it is to write where this one reads.
  setenv("RENSA_TEST_TRACE", (folder / "trace.json").c_str(), 0);
  const char* known = std::getenv("RENSA_TEST_TRACE");
  ASSERT_NE(known, nullptr);
  std::string path = known;
  EXPECT_EXIT(record_by_environment(path, nullptr), ::testing::ExitedWithCode(0), "");
  // Of two processes each has a file.
  EXPECT_EXIT(record_by_environment(path, "0"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(record_by_environment(path, "1"), ::testing::ExitedWithCode(0), "");
  unsetenv("RENSA_TEST_TRACE");
  for (const char* name : {"trace.json", "trace.rank0.json", "trace.rank1.json"}) {
    EXPECT_TRUE(find(timeline::read(folder / name), Kind::operation, "exp")) << name;
  }
}

TEST(Timeline, OfSeveralRanksInOne) {
  testing::TemporaryFolder folder;
  Record exp, kernel;
  exp.name = kernel.name = "exp";
  exp.begin_ns = 1000, exp.end_ns = 3000, exp.row = 1;
  kernel.kind = Kind::kernel, kernel.device = gpu(1);
  kernel.begin_ns = 2500, kernel.end_ns = 4000, kernel.row = 7;
  std::vector<std::string> traces;
  for (int rank : {0, 1}) {
    traces.push_back(timeline::path_of_rank(folder / "trace.json", rank));
    timeline::write({exp, kernel}, traces.back(), 1'700'000'000'000'000'000 + 500'000 * rank);
  }
  timeline::merge(traces, folder / "trace.json");
  std::vector<Record> all = timeline::read(folder / "trace.json");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].begin_ns, 1000);
  EXPECT_EQ(all[2].begin_ns, 501000);
  EXPECT_EQ(all[2].end_ns, 503000);
  EXPECT_NE(all[2].row, all[0].row);  // threads of other processes
  EXPECT_EQ(all[3].device, gpu(1));
  EXPECT_EQ(all[3].row, 7);
  std::string text = contents(folder / "trace.json");
  for (const char* process : {"rank 0: host", "rank 1: host", "rank 0: cuda:1", "rank 1: cuda:1"}) {
    EXPECT_EQ(count_of(text, process), 1) << process;
  }
  // What does not say when it began.
  timeline::write({exp}, folder / "other.json");
  EXPECT_THROW(timeline::merge({traces[0], folder / "other.json"}, folder / "all.json"),
               SerializationError);
  EXPECT_THROW(timeline::merge({folder / "none.json"}, folder / "all.json"), SerializationError);
}

TEST(Timeline, AnEndUnderForbidSyncIsAnEnd) {
  Array a = xp::ones({10}, float32, testing::test_devices().back());
  {
    cuda::ForbidSync strict;
    timeline::Timeline running("");
    xp::exp(a);
  }
  EXPECT_FALSE(timeline::is_recording());
}

TEST(Timeline, ShowsWhatGpusDo) {
  RENSA_NEEDS_GPUS(1);
  Array a = xp::ones({1 << 20}, float32, gpu(0)), host = xp::ones({1 << 20}, float32, cpu());
  cuda::synchronize(gpu(0));
  cuda::Stream side(gpu(0), cuda::non_blocking);
  timeline::Timeline running("");
  if (!running.note().empty()) GTEST_SKIP() << running.note();
  Array b = xp::exp(a);
  {
    cuda::StreamScope on(side);
    Array c = host.to(gpu(0));
    c = xp::sin(c);
    c.get();
  }
  cuda::synchronize(gpu(0));
  std::vector<Record> records = running.stop();
  auto kernel_of = [&](const std::string& operation) -> const Record* {
    for (const Record& r : records) {
      if (r.kind == Kind::kernel && r.operation == operation) return &r;
    }
    return nullptr;
  };
  const Record *exp = kernel_of("exp"), *sin = kernel_of("sin");
  ASSERT_TRUE(exp && sin);
  EXPECT_EQ(exp->device, gpu(0));
  EXPECT_NE(exp->row, sin->row) << "streams have rows of their own";
  EXPECT_FALSE(exp->detail.empty());
  const Record* queued = find(records, Kind::operation, "exp");
  ASSERT_TRUE(queued);
  // On one clock: the kernel starts after its call began, and soon.
  EXPECT_GT(exp->begin_ns, queued->begin_ns - 100'000);
  EXPECT_LT(exp->begin_ns, queued->begin_ns + 1'000'000'000);
  EXPECT_LT(exp->end_ns - exp->begin_ns, 100'000'000);
  const Record* up = find(records, Kind::copy_to_device, "host to device");
  const Record* down = find(records, Kind::copy_to_host, "device to host");
  ASSERT_TRUE(up && down);
  EXPECT_EQ(up->bytes, 4 << 20);
  EXPECT_EQ(up->row, sin->row);
  EXPECT_LE(up->end_ns, sin->begin_ns);
  EXPECT_LE(sin->end_ns, down->begin_ns);
  EXPECT_TRUE(find(records, Kind::wait, "synchronize"));
  EXPECT_TRUE(find(records, Kind::wait, "wait for a device"));
}

}  // namespace
}  // namespace rensa

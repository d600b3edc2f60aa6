// docs/waiting.md: every row of its table, and its example.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rensa/array/linalg.h"
#include "rensa/array/order_statistics.h"
#include "rensa/array/random.h"
#include "rensa/array/ufuncs/powers.h"
#include "rensa/core/error.h"
#include "rensa/device/stream_graph.h"
#include "rensa/device/timeline.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// The table's first two columns.
std::map<std::string, bool> documented() {
  std::ifstream page(testing::data_file("waiting.md"));
  std::map<std::string, bool> rows;
  for (std::string line; std::getline(page, line);) {
    if (line == "## Networks") break;  // tests/training/waiting_test.cc
    if (line.rfind("| `", 0) != 0) continue;
    auto end = line.find("` |", 3);
    rows[line.substr(3, end - 3)] = line.compare(end + 4, 3, "yes") == 0;
  }
  return rows;
}

/// What the calls work on. On the CPU they run as well: there nothing may wait.
struct Things {
  explicit Things(Device on) : device(on) {
    a = xp::ones({64}, float32, device);
    b = xp::full({64}, 2, float32, device);
    m = xp::ones({32, 32}, float32, device);
    host = xp::ones({64}, float32, cpu());
    indices = xp::arange(4, int64, device);
    mask = a > 0;
  }
  Device device;
  Array a, b, m, host, indices, mask, one;
};

using Call = std::function<void(Things&)>;

std::map<std::string, Call> array_calls() {
  return {
      {"a.item<T>()", [](Things& t) { (void)t.a[0].item<float>(); }},
      {"a.to_vector<T>()", [](Things& t) { (void)t.a.to_vector<float>(); }},
      {"a.str()", [](Things& t) { (void)t.a.str(); }},
      {"stream << a", [](Things& t) { std::ostringstream() << t.a; }},
      {"a.get()", [](Things& t) { (void)t.a.get(); }},
      {"a.to(cpu())", [](Things& t) { (void)t.a.to(cpu()); }},
      {"to_cpu(a)", [](Things& t) { (void)to_cpu(t.a); }},
      {"a.set(pageable)", [](Things& t) { t.a.set(t.host); }},
      {"host.to(gpu(0))", [](Things& t) { (void)t.host.to(t.device); }},
      {"xp::array(values)",
       [](Things& t) { (void)xp::array(std::vector<float>(100, 1.f), t.device); }},
      {"a.copy()", [](Things& t) { (void)t.a.copy(); }},
      {"a.copy(gpu(0))", [](Things& t) { (void)t.a.copy(t.device); }},
      {"a.astype(dtype)", [](Things& t) { (void)t.a.astype(float64); }},
      {"a.astype(dtype, {.device = cpu()})",
       [](Things& t) { (void)t.a.astype(float64, {.device = cpu()}); }},
      {"a.fill(value)", [](Things& t) { t.a.fill(3); }},
      {"a[Slice(1, 3)]", [](Things& t) { (void)Array(t.a[Slice(1, 3)]); }},
      {"a[indices]", [](Things& t) { (void)Array(t.a[t.indices]); }},
      {"a[mask] = 0", [](Things& t) { t.a[t.mask] = 0; }},
      {"a + b", [](Things& t) { (void)(t.a + t.b); }},
      {"a.sum()", [](Things& t) { (void)t.a.sum(); }},
      {"xp::hypot.reduce(a)", [](Things& t) { (void)xp::hypot.reduce(t.a); }},
      {"xp::add.at(a, indices, b)", [](Things& t) { xp::add.at(t.a, t.indices, t.b[Slice(4)]); }},
      {"xp::multiply.at(a, indices, b)",
       [](Things& t) { xp::multiply.at(t.a, t.indices, t.b[Slice(4)]); }},
      {"xp::add.reduceat(a, indices)", [](Things& t) { (void)xp::add.reduceat(t.a, t.indices); }},
      {"xp::concatenate({a, b})",
       [](Things& t) {
         (void)xp::concatenate({t.a, t.b});
       }},
      {"xp::matmul(m, m)", [](Things& t) { (void)xp::matmul(t.m, t.m); }},
      {"xp::random::uniform(0, 1, shape)",
       [](Things& t) { (void)xp::random::uniform(0, 1, {100}, float32, t.device); }},
      {"xp::random::permutation(n)",
       [](Things& t) { (void)xp::random::permutation(100, t.device); }},
      {"xp::random::default_rng(a)", [](Things& t) { (void)xp::random::default_rng(t.indices); }},
      {"xp::quantile(a, q)", [](Things& t) { (void)xp::quantile(t.a, t.b * 0.25f); }},
      {"xp::array_equal(a, b)", [](Things& t) { (void)xp::array_equal(t.a, t.b); }},
      {"xp::allclose(a, b)", [](Things& t) { (void)xp::allclose(t.a, t.b); }},
      {"cuda::synchronize(gpu(0))", [](Things& t) { cuda::synchronize(t.device); }},
  };
}

/// Those that need a GPU to be called at all.
std::map<std::string, Call> gpu_calls() {
  auto stream = [](Things& t) { return cuda::current_stream(t.device); };
  return {
      {"a.get(pinned, stream)",
       [=](Things& t) { t.a.get(xp::empty_pinned({64}, float32), stream(t)); }},
      {"a.get(pageable, stream)",
       [=](Things& t) { t.a.get(xp::empty({64}, float32, cpu()), stream(t)); }},
      {"a.set(pinned)", [](Things& t) { t.a.set(to_pinned_memory(t.host)); }},
      {"to_gpu(host)", [](Things& t) { (void)to_gpu(t.host, t.device.index); }},
      {"to_pinned_memory(a)", [](Things& t) { (void)to_pinned_memory(t.a); }},
      {"stream.synchronize()", [=](Things& t) { stream(t).synchronize(); }},
      {"event.synchronize()",
       [](Things& t) {
         cuda::Event event;
         event.record(t.device);
         event.synchronize();
       }},
      {"stream.done()", [=](Things& t) { (void)stream(t).done(); }},
      {"stream.record(event)", [=](Things& t) { stream(t).record(cuda::Event()); }},
      {"stream.wait(event)",
       [=](Things& t) {
         cuda::Event event;
         event.record(t.device);
         cuda::Stream(t.device).wait(event);
       }},
      {"cuda::elapsed_time(start, stop)",
       [=](Things& t) {
         cuda::Event start, stop;
         start.record(t.device);
         stop.record(t.device);
         while (!stop.done()) {}
         (void)cuda::elapsed_time(start, stop);
       }},
      {"stream.launch_host_func(f)", [=](Things& t) { stream(t).launch_host_func([] {}); }},
      {"cuda::capture_graph(stream, f)",
       [](Things& t) {
         (void)cuda::capture_graph(cuda::Stream(t.device, cuda::non_blocking),
                                   [&] { (void)(t.a + t.b); });
       }},
      {"graph.launch(stream)",
       [](Things& t) {
         cuda::Stream side(t.device, cuda::non_blocking);
         cuda::Graph graph = cuda::capture_graph(side, [&] { t.one = t.a + t.b; });
         graph.launch(side);
       }},
      {"cuda::mem_info(gpu(0))", [](Things& t) { (void)cuda::mem_info(t.device); }},
      {"timeline.stop()",
       [](Things& t) {
         timeline::Timeline timeline("");
         (void)(t.a + t.b);
         timeline.stop();
       }},
  };
}

TEST(Waiting, EveryRowHasItsCheckAndEveryCheckItsRow) {
  std::map<std::string, bool> rows = documented();
  EXPECT_GT(rows.size(), 40u);
  std::map<std::string, Call> calls = array_calls(), more = gpu_calls();
  calls.merge(more);
  for (const auto& [name, waits] : rows) EXPECT_EQ(calls.count(name), 1u) << name;
  for (const auto& [name, call] : calls) EXPECT_EQ(rows.count(name), 1u) << name;
}

TEST(Waiting, NothingWaitsOnTheCpu) {
  cuda::ForbidSync strict;
  std::int64_t before = cuda::sync_count();
  for (const auto& [name, call] : array_calls()) {
    Things things(cpu());
    EXPECT_NO_THROW(call(things)) << name;
  }
  EXPECT_EQ(cuda::sync_count(), before);
}

TEST(Waiting, OnAGpuEachCallDoesWhatItsRowSays) {
  RENSA_NEEDS_GPUS(1);
  std::map<std::string, bool> rows = documented();
  std::map<std::string, Call> calls = array_calls(), more = gpu_calls();
  calls.merge(more);
  for (const auto& [name, call] : calls) {
    Things things(gpu(0));
    std::int64_t before = cuda::sync_count();
    call(things);
    EXPECT_EQ(cuda::sync_count() > before, rows.at(name)) << name;
    cuda::synchronize(gpu(0));
    if (name == "timeline.stop()") continue;
    cuda::ForbidSync strict;
    if (rows.at(name)) {
      EXPECT_THROW(call(things), SyncError) << name;
    } else {
      EXPECT_NO_THROW(call(things)) << name;
    }
  }
}

// docs/devices.md, exercise 3: to log norms one by one is a wait each, a log on the device is one.
TEST(Waiting, ALogOnTheDeviceIsWaitedForOnce) {
  constexpr std::int64_t kCount = 20;
  for (Device device : testing::test_devices()) {
    Array a = xp::ones({kCount, 10, 10}, float32, device), b = xp::eye(10, float32, device);
    auto norm_of = [&](std::int64_t i) { return xp::linalg::norm(xp::matmul(a[i], b)); };
    Array log = xp::zeros({kCount}, float32, device);
    std::int64_t begun = cuda::sync_count();
    for (std::int64_t i = 0; i < kCount; ++i) log[i] = norm_of(i);
    EXPECT_EQ(cuda::sync_count() - begun, 0);
    EXPECT_EQ(log.to_vector<float>(), std::vector<float>(kCount, 10));
    EXPECT_EQ(cuda::sync_count() - begun, device.is_cuda() ? 1 : 0);
    for (std::int64_t i = 0; i < kCount; ++i) EXPECT_EQ(norm_of(i).item<float>(), 10);
    EXPECT_EQ(cuda::sync_count() - begun, device.is_cuda() ? kCount + 1 : 0);
  }
}

TEST(Waiting, TheExampleThrows) {
  RENSA_NEEDS_GPUS(1);
  Array prediction = xp::ones({10}, float32, gpu(0)), target = prediction * 2;
  auto example = [&] {
    cuda::ForbidSync strict;
    Array loss = (prediction - target).sum();  // queued
    loss.item<float>();                        // throws: item waits for the device, ...
  };
  try {
    example();
    FAIL();
  } catch (const SyncError& error) {
    EXPECT_EQ(std::string(error.what()).find("item waits for the device, "), 0u) << error.what();
  }
}

}  // namespace
}  // namespace rensa

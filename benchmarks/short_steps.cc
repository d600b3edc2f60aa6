// Steps so short that launches and calls decide: one step of an LSTM of 256 units that carries its
// state, and a policy of two layers of 256 units, without gradients, at batch 1 to 64; captured on
// a GPU, where the policy is timed with its result brought to the host too.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

constexpr std::int64_t kUnits = 256, kObservations = 32, kActions = 8;

struct Policy : Chain<Policy> {
  L::Linear first{kObservations, kUnits}, second{kUnits, kUnits}, actions{kUnits, kActions};
  void members(Visitor& v) override {
    v("first", first);
    v("second", second);
    v("actions", actions);
  }
  Variable operator()(const Variable& x) const {
    return F::tanh(actions(F::tanh(second(F::tanh(first(x))))));
  }
};

struct Cell : Chain<Cell> {
  L::StatelessLSTM lstm{kUnits, kUnits};
  void members(Visitor& v) override { v("lstm", lstm); }
};

struct Timing {
  Device device;
  int calls;
  std::string how;

  /// Times a step that takes and gives variables: captured on a GPU, as it is on the CPU.
  void run(const std::string& what, const CaptureCache::Step& step, Variables in, bool carries) {
    bool captures = device.is_cuda();
    CaptureCache cache;
    auto call = [&] { return captures ? cache.call(step, in) : step(in); };
    auto one = [&] {
      Variables out = call();
      if (carries) std::copy(out.begin(), out.end(), in.begin());
    };
    std::string row = fmt::format("{} B={} {} rensa", what, in.back().shape(0), how) +
                      (captures ? " captured" : "");
    print(row, benchmarks::median_seconds(one, calls, device), cache.stats());
    if (carries || !captures) return;
    auto to_host = [&] { call()[0].array().to_vector<float>(); };
    print(row + " to the host", benchmarks::median_seconds(to_host, calls, device), cache.stats());
  }

 private:
  static void print(const std::string& row, double seconds, const CaptureStats& stats) {
    benchmarks::print_figure(
        row, seconds * 1e6, "us",
        fmt::format(", \"replays\": {}, \"fallbacks\": {}, \"operations\": {}, "
                    "\"rewritten_operations\": {}",
                    stats.replays, stats.fallbacks, stats.operations, stats.rewritten_operations));
  }
};

Variable numbers(std::int64_t rows, std::int64_t columns, Device device) {
  return constant(xp::random::normal(0, 1, {rows, columns}, float32, device));
}

void time_policy(Timing timing, std::int64_t batch) {
  no_backprop_mode inference;
  Policy policy;
  policy.to_device(timing.device);
  timing.run(
      "policy", [&](const Variables& in) { return Variables{policy(in[0])}; },
      {numbers(batch, kObservations, timing.device)}, false);
}

void time_cell(Timing timing, std::int64_t batch) {
  no_backprop_mode inference;
  Cell cell;
  cell.to_device(timing.device);
  Variables in;
  for (int k = 0; k < 3; ++k) in.push_back(numbers(batch, kUnits, timing.device));
  auto step = [&](const Variables& of) {
    auto [c, h] = cell.lstm(of[0], of[1], of[2]);
    return Variables{c, h};
  };
  timing.run("lstm cell", step, in, true);
}

}  // namespace

int main(int argc, char** argv) try {
  std::string name = "cuda:0";
  std::vector<std::int64_t> batches{1, 16, 64};
  int calls = 1000;
  CLI::App app("Times captured steps of an LSTM cell and of a small policy network.");
  app.add_option("--device", name, "cpu or cuda:N")->capture_default_str();
  app.add_option("--batchsize", batches, "batch sizes")->capture_default_str();
  app.add_option("--calls", calls, "calls a timing")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  Device device(name);
  if (device.is_cuda()) device.use();
  xp::random::seed(1);
  config().autotune = device.is_cuda();
  for (bool tf32 : {false, true}) {
    if (tf32 && device.is_cpu()) break;
    config().tf32 = tf32;
    Timing timing{device, calls, device.is_cpu() ? "cpu" : tf32 ? "tf32" : "fp32"};
    for (std::int64_t batch : batches) {
      time_policy(timing, batch);
      time_cell(timing, batch);
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

// How far the captured training step of the guide's net (MLP 784-1000-1000-10, SGD) is from what
// the machine allows, over batches: beside its time the times that its multiplications take at the
// rate of a large product, its memory at the rate of a large copy, and its longest chain of
// operations at the time that one takes which only waits for the one before. As figures, and as
// curves with --picture.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "benchmarks/mlp.h"
#include "benchmarks/timing.h"
#include "rensa/core/files.h"

namespace {

using namespace rensa;
using benchmarks::median_seconds, benchmarks::MLP;

constexpr std::int64_t kIn = MLP::kIn, kUnits = MLP::kUnits, kClasses = MLP::kClasses;

/// Of each sample, forward and backward; the samples want no gradient.
constexpr double kMultiplications = 2 * kIn * kUnits + 3 * kUnits * kUnits + 3 * kUnits * kClasses;

/// What the device does at best.
struct Rates {
  double multiplications;  // a second, of a large product
  double bytes;            // a second, read or written by a large copy
  double link;             // seconds from one operation to the next in a captured step
};

CaptureOptions capture_options(bool rewrite) {
  return {.rewrite = rewrite, .replay_lists = true};  // lists: where there are no graphs
}

Rates rates_of(Device device, bool tf32) {
  config().tf32 = tf32;
  std::int64_t side = device.is_cuda() ? 8192 : 1024, copied = device.is_cuda() ? 1 << 26 : 1 << 24;
  Array a = xp::random::uniform(-1, 1, {side, side}, float32, device), c = xp::empty_like(a);
  double product = median_seconds([&] { xp::matmul(a, a, {.out = c}); }, 5, device);
  Array from = xp::ones({copied}, float32, device), to = xp::empty_like(from);
  double copy = median_seconds([&] { to.assign(from); }, 10, device);
  // Operations that are left apart, each of which does next to nothing but wait.
  constexpr int kShort = 10, kLong = 110;
  auto chain = [&](int length) {
    auto step = capture(
        [length](const Variable& x) {
          Array sum = x.array();
          for (int i = 0; i < length; ++i) sum = sum + 1;
          return constant(sum);
        },
        capture_options(false));
    Variable x = constant(xp::zeros({16}, float32, device));
    return median_seconds([&] { step(x); }, 200, device);
  };
  return {static_cast<double>(side * side * side) / product,
          8.0 * static_cast<double>(copied) / copy,
          (chain(kLong) - chain(kShort)) / (kLong - kShort)};
}

/// A row of the table: microseconds.
struct Row {
  double step, multiplications, bytes, chain;
  std::int64_t operations, links;
};

Row measure(Device device, std::int64_t batch, const Rates& rates) {
  L::Classifier<MLP> model{MLP()};
  model.compute_accuracy = false;
  model.to_device(device);
  optimizers::SGD optimizer(0.01);
  optimizer.setup(model);
  Array x = xp::random::random({batch, kIn}, float32, device);
  Array t = xp::random::randint(0, kClasses, {batch}, int32, device);
  auto step = capture([&](const Variable& in) { return optimizer.update(model, in, constant(t)); },
                      capture_options(true));
  Variable in = constant(x);
  double seconds = median_seconds([&] { step(in); }, device.is_cuda() ? 500 : 10, device);
  const CaptureStats& stats = step.stats();
  if (stats.replays == 0) fmt::print(stderr, "stayed eager: {}\n", stats.last_fallback);
  double samples = static_cast<double>(batch);
  // Of memory the least: parameters read and written once, samples read once.
  double bytes = 4 * (2 * static_cast<double>(model.count_params()) + samples * kIn);
  return {seconds * 1e6,
          samples * kMultiplications / rates.multiplications * 1e6,
          bytes / rates.bytes * 1e6,
          static_cast<double>(stats.longest_chain) * rates.link * 1e6,
          stats.rewritten_operations,
          stats.longest_chain};
}

std::vector<PlotSeries> run(Device device, bool tf32, const std::vector<std::int64_t>& batches) {
  Rates rates = rates_of(device, tf32);
  const char* precision = tf32 ? "tf32" : "fp32";
  benchmarks::print_figure(fmt::format("large product {}", precision),
                           2e-12 * rates.multiplications, "TFLOP/s");
  benchmarks::print_figure(fmt::format("large copy {}", precision), 1e-9 * rates.bytes, "GB/s");
  benchmarks::print_figure(fmt::format("link of a chain {}", precision), 1e6 * rates.link, "us");
  std::vector<PlotSeries> lines{{"captured step", {}},
                                {"its multiplications", {}},
                                {"its memory", {}},
                                {"its longest chain", {}}};
  for (std::int64_t batch : batches) {
    Row row = measure(device, batch, rates);
    double values[] = {row.step, row.multiplications, row.bytes, row.chain};
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i].points.emplace_back(batch, values[i]);
    benchmarks::print_figure(
        fmt::format("floor B={} {} rensa captured", batch, precision), row.step, "us/step",
        fmt::format(", \"multiplications\": {:.4g}, \"memory\": {:.4g}, \"chain\": {:.4g}, "
                    "\"operations\": {}, \"longest_chain\": {}, \"times_floor\": {:.3g}",
                    row.multiplications, row.bytes, row.chain, row.operations, row.links,
                    row.step / std::max({row.multiplications, row.bytes, row.chain})));
  }
  return lines;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string device_name = try_gpu().str(), picture;
  std::vector<std::int64_t> batches{1, 10, 32, 100, 316, 1024, 4096};
  bool autotune = false;
  CLI::App app("How far a captured training step is from what the machine allows.");
  app.add_option("device", device_name)->capture_default_str();
  app.add_option("--batchsize", batches, "batch sizes")->delimiter(',')->capture_default_str();
  app.add_flag("--autotune", autotune, "choose the products' plans by timing");
  app.add_option("--picture", picture, "a file for the curves, .svg or .png");
  CLI11_PARSE(app, argc, argv);
  Device device(device_name);
  if (device.is_cuda()) device.use();
  config().autotune = autotune;
  xp::random::seed(0);
  std::vector<PlotPanel> panels;
  for (bool tf32 : {false, true}) {
    if (tf32 && device.is_cpu()) break;
    PlotOptions words{.title = tf32 ? "TF32" : "float32",
                      .x_label = "samples of a batch",
                      .y_label = "us a step"};
    words.log_x = words.log_y = true;
    panels.push_back({run(device, tf32, batches), words});
  }
  if (picture.empty()) return 0;
  detail::write_whole_file(picture, plot_grid(panels, 2, picture_format("step_floor", picture)));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

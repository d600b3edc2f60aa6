// The training step of the guide's net: MLP 784-1000-1000-10, softmax cross entropy, SGD, the data
// on the device and the batch gathered by index inside the step; eager and captured by one program
// under one set of flags, and whether the two give the same parameters, bit for bit. A captured
// step may make several updates one after the other, as a scan over batches does.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "benchmarks/mlp.h"
#include "benchmarks/timing.h"

namespace {

using namespace rensa;
using benchmarks::MLP;

constexpr std::int64_t kSamples = 60000;

struct Data {
  Array x, t, order;
};

/// A model with its optimizer, and the step that trains them on the rows of an index array.
class Training {
 public:
  Training(const Data& data, const MLP& initial) : data_(data), model_(MLP(initial)) {
    model_.compute_accuracy = false;
    optimizer_.setup(model_);
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  Variable operator()(const Variable& index) {
    return optimizer_.update(model_, constant(data_.x[index.array()]),
                             constant(data_.t[index.array()]));
  }
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const ParameterRef& p : model_.params()) {
      std::vector<float> values = p.array().to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  const Data& data_;
  L::Classifier<MLP> model_;
  optimizers::SGD optimizer_{0.01};
};

/// The batches of an epoch in turn, again and again.
class Batches {
 public:
  Batches(const Data& data, std::int64_t size) : order_(data.order), size_(size) {
    if (size > kSamples) {
      throw ValueError(fmt::format("{} samples a step, of {} that there are", size, kSamples));
    }
  }
  Array next() {
    std::int64_t first = next_++ % (kSamples / size_) * size_;
    return order_[Slice(first, first + size_)];
  }

 private:
  Array order_;
  std::int64_t size_, next_ = 0;
};

bool bit_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Options {
  std::string device = "cpu";
  std::vector<std::int64_t> batch_sizes{100, 1024};
  int eager_steps = 300, captured_steps = 1000, compared_steps = 100, updates = 1;
  bool autotune = false;
  CaptureOptions capture;
};

/// Times one row and prints it. Returns whether eager and captured agree and nothing fell back.
bool run_row(const Options& options, const Data& data, std::int64_t batch, const char* precision) {
  Device device(options.device);
  std::string row = fmt::format("mnist_mlp1000 B={} {}", batch, precision);
  if (device.is_cpu()) row += " cpu";
  MLP initial;
  initial.to_device(device);
  using benchmarks::median_seconds, benchmarks::print_figure;

  Training eager(data, initial);
  Batches eager_batches(data, batch);
  auto eager_step = [&] { eager(eager_batches.next()); };
  int steps = device.is_cpu() ? std::max(options.eager_steps / 10, 1) : options.eager_steps;
  print_figure(row + " rensa eager", median_seconds(eager_step, steps, device) * 1e6, "us/step");
  if (device.is_cpu()) return true;

  auto updates_of = [&](Training& training) {
    return [&training, batch, count = options.updates](const Variable& index) {
      Variable loss;
      for (int i = 0; i < count; ++i) loss = training(index[Slice(i * batch, (i + 1) * batch)]);
      return loss;
    };
  };
  Training captured(data, initial);
  Batches captured_batches(data, batch * options.updates);
  auto step = capture(updates_of(captured), options.capture);
  auto captured_step = [&] { step(captured_batches.next()); };
  int calls = std::max(options.captured_steps / options.updates, 1);
  double seconds = median_seconds(captured_step, calls, device) / options.updates;
  const CaptureStats stats = step.stats();

  Training one(data, initial), other(data, initial);
  Batches batches(data, batch * options.updates);
  auto one_step = updates_of(one);
  auto other_step = capture(updates_of(other), options.capture);
  bool losses_equal = true;
  for (int i = 0; i < options.compared_steps; ++i) {
    Array index = batches.next();
    losses_equal &= one_step(index).item<float>() == other_step(index).item<float>();
  }
  bool equal = losses_equal && bit_equal(one.parameters(), other.parameters());
  row += " rensa captured";
  if (options.updates > 1) row += fmt::format(", {} updates a replay", options.updates);
  print_figure(row, seconds * 1e6, "us/step",
               fmt::format(", \"replays\": {}, \"fallbacks\": {}, \"operations\": {}, "
                           "\"rewritten_operations\": {}, \"equal_to_eager\": {}",
                           stats.replays, stats.fallbacks, stats.operations,
                           stats.rewritten_operations, equal));
  if (stats.fallbacks > 0) fmt::print(stderr, "stayed eager: {}\n", stats.last_fallback);
  return equal && stats.fallbacks == 0 && stats.replays > 0;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app("Times the training step of the guide's MLP, eager and captured.");
  app.add_option("--device", options.device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--batchsize", options.batch_sizes, "batch sizes")->capture_default_str();
  app.add_option("--eager-steps", options.eager_steps, "steps a timing")->capture_default_str();
  app.add_option("--captured-steps", options.captured_steps, "steps a timing")
      ->capture_default_str();
  app.add_option("--compared-steps", options.compared_steps, "steps that eager is compared over")
      ->capture_default_str();
  app.add_option("--updates", options.updates, "of a captured step, with a batch each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--autotune", options.autotune, "choose the products' plans by timing");
  app.add_flag("!--no-branches", options.capture.branches, "captured: one operation after another");
  app.add_flag("!--no-rewrite", options.capture.rewrite, "captured: the operations as recorded");
  CLI11_PARSE(app, argc, argv);

  Device device(options.device);
  if (device.is_cuda()) device.use();
  config().autotune = options.autotune;
  xp::random::seed(0);
  Data data{xp::random::random({kSamples, 784}, float32, device),
            xp::random::randint(0, 10, {kSamples}, int64, device),
            xp::random::permutation(kSamples, device)};
  bool fine = true;
  constexpr std::pair<const char*, UseTf32> kPrecisions[] = {
      {"fp32", false}, {"tf32x3", UseTf32::x3()}, {"tf32", true}};
  for (auto [precision, tf32] : kPrecisions) {
    config().tf32 = tf32;
    for (std::int64_t batch : options.batch_sizes) fine &= run_row(options, data, batch, precision);
    if (device.is_cpu()) break;
  }
  return fine ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

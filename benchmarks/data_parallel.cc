// Data-parallel training of the guide's MLP in one process: an iteration of StandardUpdater on one
// GPU against one of ParallelUpdater on two, at equal global batches; whether the replicas stay
// bit-equal and the losses of the first steps agree.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

struct MLP : Chain<MLP> {
  L::Linear l1{784, 1000}, l2{1000, 1000}, l3{1000, 10};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

struct Options {
  std::int64_t batch = 4096;
  int steps = 200, compared_steps = 20;
  std::vector<std::string> devices{"cuda:0", "cuda:1"};
};

/// The model in a Classifier with its optimizer and batches of its own.
struct Run {
  L::Classifier<MLP> model;
  optimizers::SGD optimizer{0.01};
  iterators::SerialIterator iterator;
  Run(const MLP& initial, const Dataset& data, std::int64_t batch)
      : model(MLP(initial)), iterator(data, batch, {.seed = 1}) {
    optimizer.setup(model);
  }
};

std::vector<float> parameters(Link& model) {
  std::vector<float> all;
  for (const ParameterRef& p : model.params()) {
    std::vector<float> values = p.array().to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void wait_for_all(const std::vector<Device>& devices) {
  for (Device device : devices) benchmarks::wait_for(device);
}

double median_microseconds(const training::Updater& updater, const Options& options,
                           const std::vector<Device>& devices) {
  auto steps = [&] {
    for (int i = 0; i < options.steps; ++i) updater.update();
    wait_for_all(devices);
  };
  return benchmarks::median_seconds(steps, 1, cpu(), 1) / options.steps * 1e6;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app("Times ParallelUpdater on two devices against StandardUpdater on one.");
  app.add_option("--batchsize", options.batch, "of both devices together")->capture_default_str();
  app.add_option("--steps", options.steps, "steps a timing")->capture_default_str();
  app.add_option("--devices", options.devices, "main and second")->expected(2);
  CLI11_PARSE(app, argc, argv);

  std::vector<Device> devices{Device(options.devices[0]), Device(options.devices[1])};
  xp::random::seed(0);
  datasets::TupleDataset data(xp::random::random({60000, 784}, float32, cpu()),
                              xp::random::randint(0, 10, {60000}, int32, cpu()));
  bool fine = true;
  for (bool tf32 : {false, true}) {
    config().tf32 = tf32;
    std::string row = fmt::format("mnist_mlp1000 B={} {}", options.batch, tf32 ? "tf32" : "fp32");
    MLP initial;
    Run one(initial, data, options.batch), two(initial, data, options.batch);
    training::StandardUpdater single(one.iterator, one.optimizer, {.device = devices[0]});
    training::ParallelUpdater parallel(
        two.iterator, two.optimizer,
        {.devices = {{"main", devices[0]}, {"second", devices[1]}}, .reduction = "mean"});
    for (int i = 0; i < options.compared_steps; ++i) single.update(), parallel.update();
    std::vector<float> a = parameters(one.model), b = parameters(two.model);
    double difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference = std::max(difference, static_cast<double>(std::abs(a[i] - b[i])));
    }
    double one_us = median_microseconds(single, options, devices);
    double two_us = median_microseconds(parallel, options, devices);
    bool equal = parameters(parallel.model("main")) == parameters(parallel.model("second"));
    benchmarks::print_figure(row + " rensa one device", one_us, "us/step");
    benchmarks::print_figure(
        row + " rensa two devices", two_us, "us/step",
        fmt::format(", \"speed_up\": {:.3f}, \"replicas_bit_equal\": {}, "
                    "\"largest_parameter_difference_after_{}_steps\": {:.2g}",
                    one_us / two_us, equal, options.compared_steps, difference));
    fine = fine && equal;
  }
  return fine ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

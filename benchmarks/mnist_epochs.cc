// Epochs of MNIST (an MLP of 1000 units, Adam, batches of 100, shuffled) by the library's own
// iterator and updater: with the data on the host or on the device, eager and captured. Seconds of
// an epoch, and the share of the test images that are named rightly after all of them.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

Sequential mlp() {
  return Sequential(L::Linear(1000), F::relu, L::Linear(1000), F::relu, L::Linear(10));
}

template <class Model>
double accuracy(Model& model, const datasets::TupleDataset& test, Device device) {
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  const Columns& columns = *test.columns();
  return F::accuracy(model.predictor(columns[0].to(device)), columns[1].to(device))
      .template item<float>();
}

void run(const datasets::TrainTest& mnist, Device device, int epochs, bool on_device,
         bool captured) {
  xp::random::seed(0);
  auto model = L::Classifier(mlp());
  model.to_device(device);
  Optimizer optimizer = optimizers::Adam();
  optimizer.setup(model);
  auto train = on_device ? mnist.train.to(device) : mnist.train;
  iterators::SerialIterator iterator(train, 100);
  training::StandardUpdater updater(iterator, optimizer, {.device = device, .capture = captured});
  std::vector<double> seconds;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    benchmarks::wait_for(device);
    auto start = std::chrono::steady_clock::now();
    do {
      updater.update();
    } while (!updater.is_new_epoch());
    benchmarks::wait_for(device);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin() + 1, seconds.end());  // the first one warms up
  double median = seconds[1 + (seconds.size() - 1) / 2];
  benchmarks::print_figure(
      fmt::format("mnist epoch, data on the {} rensa {}{}{}", on_device ? "GPU" : "host",
                  captured ? "captured" : "eager", config().tf32 ? ", TF32" : "",
                  config().autotune ? ", autotuned" : ""),
      median, "s",
      fmt::format(", \"accuracy\": {:.5f}, \"epochs\": {}", accuracy(model, mnist.test, device),
                  epochs));
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Epochs of MNIST");
  std::string device_name = "cuda:0";
  int epochs = 20;
  bool tf32 = false;
  app.add_option("device", device_name);
  app.add_option("--epochs", epochs)->check(CLI::Range(2, 1000));
  app.add_flag("--tf32", tf32, "products in TF32");
  app.add_flag("--autotune", config().autotune, "choose the products' plans by timing");
  CLI11_PARSE(app, argc, argv);
  config().tf32 = tf32;
  Device device(device_name);
  datasets::TrainTest mnist = datasets::get_mnist();
  for (bool on_device : {false, true}) {
    for (bool captured : {false, true}) run(mnist, device, epochs, on_device, captured);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

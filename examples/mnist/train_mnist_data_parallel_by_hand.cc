// MNIST with a copy of the network on each of two devices, the loop written by hand: what
// ParallelUpdater does, without its threads.
#include <iostream>

#include "net.h"
#include "options.h"

using namespace rensa;

static void train(const Options& options, const datasets::TrainTest& data) {
  Device device_0 = options.devices[0], device_1 = options.devices[1];
  Array x_train = (*data.train.columns())[0], t_train = (*data.train.columns())[1];

  auto model_0 = L::Classifier(MLP(options.unit, 10));
  model_0(x_train[Slice(1)], t_train[Slice(1)]);  // makes the parameters, before there are two
  auto model_1 = model_0.copy(CopyMode::copy);
  model_0.to(device_0);
  model_1.to(device_1);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model_0);

  std::int64_t datasize = x_train.shape(0), batchsize = options.batchsize;
  for (int epoch = 1; epoch <= options.epoch; ++epoch) {
    Array order = xp::random::permutation(datasize, cpu());
    Array sum = xp::zeros({}, float64, device_0);
    std::int64_t steps = 0;
    for (std::int64_t i = 0; i + 1 < datasize; i += batchsize, ++steps) {
      Array batch = order[Slice(i, i + batchsize)];
      std::int64_t half = batch.shape(0) / 2;
      Array first = batch[Slice(half)], second = batch[Slice(half, none)];

      Variable loss_0 = model_0(x_train[first].to(device_0), t_train[first].to(device_0));
      Variable loss_1 = model_1(x_train[second].to(device_1), t_train[second].to(device_1));

      model_0.cleargrads();
      model_1.cleargrads();
      loss_0.backward();
      loss_1.backward();

      model_0.addgrads(model_1);    // the sum of the two, on model_0's device
      optimizer.update();           // changes model_0 alone
      model_1.copyparams(model_0);  // and back
      sum += loss_0.array();
    }
    std::cout << "epoch " << epoch << "  loss " << sum.item<double>() / static_cast<double>(steps)
              << std::endl;
  }
}

int main(int argc, char** argv) {
  return run_example(
      argc, argv,
      {.description = "Trains a network on MNIST, each batch split between two devices by hand",
       .num_gpus = 2,
       .capture = false,
       .resume = false,
       .iterations = false},
      train, true);
}

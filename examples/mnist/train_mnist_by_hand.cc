// MNIST from whole arrays: an order for each epoch, and batches that are sent to the device by
// hand.
#include <iostream>

#include "net.h"
#include "options.h"

using namespace rensa;

/// The share of a data set that the network names rightly, all of it in one batch.
static float accuracy(const MLP& net, const datasets::TupleDataset& data, Device device) {
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  const Columns& columns = *data.columns();
  return F::accuracy(net(columns[0].to(device)), columns[1].to(device)).item<float>();
}

static void train(const Options& options, const datasets::TrainTest& data) {
  Device device = options.device();
  Array x_train = (*data.train.columns())[0], t_train = (*data.train.columns())[1];

  auto model = L::Classifier(MLP(options.unit, 10));
  model.to(device);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);

  std::int64_t datasize = x_train.shape(0), batchsize = options.batchsize;
  for (int epoch = 1; epoch <= options.epoch; ++epoch) {
    Array order = xp::random::permutation(datasize, cpu());
    for (std::int64_t i = 0; i < datasize; i += batchsize) {
      Array batch = order[Slice(i, i + batchsize)];
      Variable x = x_train[batch].to(device), t = t_train[batch].to(device);
      optimizer.update(model, x, t);
    }
    std::cout << "epoch " << epoch << "  test accuracy "
              << accuracy(model.predictor, data.test, device) << std::endl;
  }
}

int main(int argc, char** argv) {
  return run_example(argc, argv,
                     {.description = "Trains a network on MNIST, whose batches are sent by hand",
                      .capture = false,
                      .resume = false,
                      .iterations = false},
                     train);
}

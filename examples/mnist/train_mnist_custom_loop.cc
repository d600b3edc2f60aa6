// MNIST with the training loop written by hand.
#include <iostream>

#include "net.h"
#include "options.h"

using namespace rensa;

/// The mean loss and accuracy over a whole dataset, waiting for the device once.
template <class Model>
static void evaluate(Model& model, const Iterator& iterator, const Converter& convert,
                     Device device) {
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  Array loss = xp::zeros({}, float64, device), accuracy = xp::zeros({}, float64, device);
  std::int64_t images = 0;
  iterator.reset();
  while (auto batch = iterator.next()) {
    Columns columns = convert(*batch, device);
    Variable y = model(constant(columns[0]));
    loss += F::softmax_cross_entropy(y, columns[1]).array() * static_cast<double>(batch->size());
    accuracy += F::accuracy(y, columns[1]).array() * static_cast<double>(batch->size());
    images += batch->size();
  }
  std::cout << "  test loss " << loss.item<double>() / static_cast<double>(images)
            << "  test accuracy " << accuracy.item<double>() / static_cast<double>(images)
            << std::endl;
}

static void train(const Options& options, const datasets::TrainTest& data) {
  Device device = options.device();
  MLP model(options.unit, 10);
  model.to_device(device);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);

  auto loss_of = [&](const Variable& x, const Variable& t) {
    return F::softmax_cross_entropy(model(x), t);
  };
  auto step = [&](const Variable& x, const Variable& t) { return optimizer.update(loss_of, x, t); };
  auto captured = capture(step);

  iterators::SerialIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  Converter convert;
  for (int epoch = 1; epoch <= options.epoch; ++epoch) {
    Array sum = xp::zeros({}, float64, device);
    std::int64_t steps = 0;
    for (; train_iter.epoch() < epoch; ++steps) {
      Columns columns = convert(*train_iter.next(), device);
      Variable x = constant(columns[0]), t = constant(columns[1]);
      sum += (options.capture ? captured(x, t) : step(x, t)).array();
    }
    std::cout << "epoch " << epoch << "  loss " << sum.item<double>() / static_cast<double>(steps);
    evaluate(model, test_iter, convert, device);
  }
}

int main(int argc, char** argv) {
  return run_example(argc, argv,
                     {.description = "Trains a network on MNIST, the loop by hand",
                      .resume = false,
                      .iterations = false},
                     train);
}

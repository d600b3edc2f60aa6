// MNIST with a replica of the network on each of two devices.
#include "net.h"
#include "options.h"

using namespace rensa;

static void train(const Options& options, const datasets::TrainTest& data) {
  auto model = L::Classifier(MLP(options.unit, 10));
  model.to_device(options.devices[0]);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);

  iterators::SerialIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  // In the place of train_mnist.cc's StandardUpdater.
  training::ParallelUpdater updater(
      train_iter, optimizer,
      {.devices = {{"main", options.devices[0]}, {"second", options.devices[1]}},
       .reduction = options.reduction,
       .capture = options.capture});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(extensions::Evaluator(test_iter, model, options.devices[0]));
  trainer.extend(extensions::LogReport());
  trainer.extend(
      extensions::PrintReport({"epoch", "main/loss", "validation/main/loss", "main/accuracy",
                               "validation/main/accuracy", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  options.print_replays(updater.capture_stats());
}

int main(int argc, char** argv) {
  return run_example(
      argc, argv,
      {.description = "Trains a network on MNIST, each batch split between two devices",
       .num_gpus = 2},
      train, true);
}
